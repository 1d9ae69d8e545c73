"""Record what one process sampled, and let several processes learn from the same."""

import importlib
from collections.abc import Sequence
from pathlib import Path

import torch

from trainers.rollout import Rollout, TorchRolloutEngine, pad_left

Completion = tuple[list[int], list[float], bool]  # ids, their log-probabilities when sampled, truncated


def record_rollouts(kind: str, path: Path, monkeypatch) -> None:
    """Let the next run of this process write all that it samples to ``path``."""
    record: dict[tuple, list[Completion]] = {}

    class Recorder(TorchRolloutEngine):
        calls = 0

        def rollout(self, prompts: Sequence[list[int]], *, num_generations: int, **settings) -> Rollout:
            found = super().rollout(prompts, num_generations=num_generations, **settings)
            self.calls += 1
            for row, prompt in enumerate(prompts):
                group = range(row * num_generations, (row + 1) * num_generations)
                record[self.calls, tuple(prompt)] = [completion_of(found, place) for place in group]
            torch.save(record, path)
            return found

    monkeypatch.setattr(importlib.import_module(f"trainers.{kind}"), "TorchRolloutEngine", Recorder)


class Replay:
    """A rollout engine that finds the recorded completions of a process's own prompts."""

    def __init__(self, path: Path, pad_token_id: int) -> None:
        self.record = torch.load(path, weights_only=True)
        self.pad = pad_token_id
        self.calls = 0

    def update_policy(self, model: object) -> None:
        pass

    def rollout(self, prompts: Sequence[list[int]], **settings: object) -> Rollout:
        self.calls += 1
        groups = [self.record[self.calls, tuple(prompt)] for prompt in prompts]
        completions = [completion for group in groups for completion in group]  # N
        asked, asked_mask = pad_left(
            [p for p, group in zip(prompts, groups, strict=True) for _ in group], self.pad, "cpu"
        )
        lengths = torch.tensor([len(ids) for ids, _, _ in completions])
        longest = int(lengths.max())
        ids = torch.tensor([ids + [self.pad] * (longest - len(ids)) for ids, _, _ in completions])  # [N, T]
        logps = torch.tensor([logps + [0.0] * (longest - len(logps)) for _, logps, _ in completions])
        mask = (torch.arange(longest) < lengths[:, None]).long()
        return Rollout(
            sequence_ids=torch.cat([asked, ids], dim=1),
            attention_mask=torch.cat([asked_mask, mask], dim=1),
            completion_ids=ids,
            completion_mask=mask,
            sampling_logps=logps,
            lengths=lengths,
            truncated=torch.tensor([truncated for _, _, truncated in completions]),
        )


def replay_rollouts(rank: int, *, kind: str, path: Path) -> None:
    """Let this process learn from what was recorded at ``path``."""

    def engine(model: object, *, eos_token_id: int, pad_token_id: int) -> Replay:
        return Replay(path, pad_token_id)

    importlib.import_module(f"trainers.{kind}").TorchRolloutEngine = engine


def completion_of(rollout: Rollout, row: int) -> Completion:
    length = int(rollout.lengths[row])
    ids, logps = rollout.completion_ids[row, :length], rollout.sampling_logps[row, :length]
    return ids.tolist(), logps.tolist(), bool(rollout.truncated[row])
