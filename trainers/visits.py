"""What a rollout leaves with SPO's tracker, and how far the policy has moved on what an earlier one left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from trainers.experience import Experience
from trainers.logps import completion_logps
from trainers.ranks import Ranks
from trainers.rollout import pad_left
from trainers.value_tracker import RewardScale, Sample, Visits


@dataclass(frozen=True)
class Expected:
    """What the tracker said of a rollout's prompts before it learned from it; a checkpoint may lie in between."""

    rows: list[int]  # B of them
    baselines: Tensor  # [B] values in units of reward
    advantages: Tensor  # [B]
    drift: Tensor  # [B]


def measured_drift(
    samples: Sequence[Sample | None], model: Any, *, temperature: float, pad_token_id: int, rows_at_once: int
) -> Tensor:
    """Return the mean distance of each sample's log-probabilities from what they are now, in nats, [B].

    Without a sample it is 0. Rows are scored ``rows_at_once`` at a time.
    """
    drift = torch.zeros(len(samples), dtype=torch.float64)
    kept = [(place, sample) for place, sample in enumerate(samples) if sample is not None]
    for start in range(0, len(kept), rows_at_once):
        places, chunk = zip(*kept[start : start + rows_at_once], strict=True)
        logps = _scored(chunk, model, temperature, pad_token_id)  # [n, T]
        for place, sample, now in zip(places, chunk, logps, strict=True):
            then = sample.per_token_logps
            drift[place] = (now[: len(then)] - then).abs().double().mean()
    return drift


@torch.no_grad()
def _scored(samples: Sequence[Sample], model: Any, temperature: float, pad_token_id: int) -> Tensor:
    device = next(model.parameters()).device
    lengths = [len(sample.per_token_logps) for sample in samples]
    longest = max(lengths)  # T
    prompts = [sample.ids[:-length].tolist() for sample, length in zip(samples, lengths, strict=True)]
    prompt_ids, prompt_mask = pad_left(prompts, pad_token_id, device)  # [n, P]
    rows = zip(samples, lengths, strict=True)
    completions = torch.stack(
        [pad(sample.ids[-length:].long(), (0, longest - length), value=pad_token_id) for sample, length in rows]
    )  # [n, T]
    mask = (torch.arange(longest) < torch.tensor(lengths)[:, None]).long()
    ids = torch.cat([prompt_ids, completions.to(device)], dim=1)
    attention_mask = torch.cat([prompt_mask, mask.to(device)], dim=1)
    return completion_logps(model, ids, attention_mask, longest, temperature).per_token_logps.float().cpu()


def samples_of(batches: Sequence[Experience]) -> list[Sample]:
    """Return each completion of a rollout with its log-probabilities at the first update."""
    samples = []
    for batch in batches:
        assert batch.old_per_token_logps is not None
        parts = zip(
            batch.rollout.sequence_ids.cpu(),
            batch.rollout.attention_mask.cpu().bool(),
            batch.old_per_token_logps.float().cpu(),
            batch.rollout.lengths.tolist(),
            strict=True,
        )
        # Copies: a view would keep, and write into the checkpoint, the whole batch.
        samples += [Sample(ids[mask].int(), logps[:length].clone()) for ids, mask, logps, length in parts]
    return samples


def visits_of_all(expected: Expected, batches: Sequence[Experience], scale: RewardScale, ranks: Ranks) -> Visits:
    """Return what the rollouts of all ranks say, in the order of ranks."""
    mine = (
        expected.rows,
        scale.to_unit(torch.cat([batch.rewards.total for batch in batches])),
        expected.drift,
        [(sample.ids, sample.per_token_logps) for sample in samples_of(batches)],
    )
    rows, scores, drift, samples = zip(*ranks.gather(mine), strict=True)
    return Visits(
        rows=[row for part in rows for row in part],
        scores=torch.cat(scores),
        drift=torch.cat(drift),
        samples=[Sample(*sample) for part in samples for sample in part],
    )
