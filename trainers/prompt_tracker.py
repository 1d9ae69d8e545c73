"""SPO's tracker with a value for each prompt: what is expected of a completion depends on what was asked.

The table holds 32 bytes for each different prompt, and for each visited one 4 bytes for every token of its prompt and
8 for every token of its last completion: 100,000 prompts with completions of 200 tokens take about 190 MB, on every
rank and in each checkpoint.

Source: SPO, arXiv 2509.13232, sections 3.1 to 3.3, and its authors' recipe.
"""

import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dataset.prompts import Prompt, PromptRows
from trainers.ranks import Ranks
from trainers.schedule import Schedule
from trainers.value_tracker import Memory, RewardScale, Sample, Visits, whitened

LEAST_WEIGHT = 0.05  # of a prompt whose outcome is certain: it is still asked now and then


class DistinctPrompts:
    """The different prompts of a file, each once: rows that ask the same and want the same answer share a value."""

    def __init__(self, rows: PromptRows) -> None:
        first: dict[int, int] = {}  # the row that first asks each
        for index in range(len(rows)):
            first.setdefault(key_of(rows[index]), index)
        self._rows = rows
        self._indices = torch.tensor(list(first.values()))  # [M]
        self.keys = torch.tensor(list(first))  # [M] int64

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int) -> Prompt:
        return self._rows[int(self._indices[index])]


def key_of(prompt: Prompt) -> int:
    """Return 64 bits that stand for what is asked and the answer that is wanted."""
    text = json.dumps([prompt.messages, prompt.answer], sort_keys=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


class PromptTracker:
    """A pair of counts for each prompt, and the last completion of each visited one, to measure the drift on."""

    def __init__(self, keys: Tensor, memory: Memory, *, seed: int) -> None:
        self.keys = keys  # [M]
        self.memory = memory
        self.seed = seed
        self.alpha = torch.full((len(keys),), 0.5, dtype=torch.float64)  # [M]
        self.beta = self.alpha.clone()  # [M]
        self.samples: dict[int, Sample] = {}
        self.estimated = 0  # prompts whose value was estimated before training, in order
        self.rho = memory.rho_max

    def estimate(self, successes: Tensor, num_samples: int) -> None:
        """Start the next prompts from offline samples, smoothed as Jeffreys does.

        Args:
            successes: Sum of the scores of each prompt's completions, [n].
            num_samples: Completions of each prompt.
        """
        rows = slice(self.estimated, self.estimated + len(successes))
        failures = num_samples - successes
        self.alpha[rows] = self.memory.prior * (successes + 0.5) / (num_samples + 1)
        self.beta[rows] = self.memory.prior * (failures + 0.5) / (num_samples + 1)
        self.estimated += len(successes)

    def rows_of(self, step: int, schedule: Schedule) -> list[int]:
        """Return this rank's part of the prompts that are drawn for step ``step``, the uncertain ones preferred."""
        values = self.alpha / (self.alpha + self.beta)  # [M]
        return schedule.share(drawn(values, schedule.batch_size_of(step), seed=f"{self.seed}/drawn/{step}"))

    def values(self, rows: Sequence[int]) -> Tensor:
        rows = list(rows)
        return self.alpha[rows] / (self.alpha[rows] + self.beta[rows])

    def last_samples(self, rows: Sequence[int]) -> list[Sample | None]:
        return [self.samples.get(row) for row in rows]

    def advantages(self, rewards: Tensor, values: Tensor, scale: RewardScale, ranks: Ranks) -> Tensor:
        """Return scores minus values in standard deviations of the optimizer batch of all ranks, [B]."""
        raw = scale.to_unit(rewards) - values
        return whitened(raw, among=ranks.cat(raw)).float()

    def update(self, visits: Visits) -> None:
        """Learn from one rollout, which visited each prompt at most once."""
        rho = self.memory.kept(visits.drift)  # [B]
        self.alpha[visits.rows] = rho * self.alpha[visits.rows] + visits.scores
        self.beta[visits.rows] = rho * self.beta[visits.rows] + 1 - visits.scores
        self.samples |= dict(zip(visits.rows, visits.samples, strict=True))
        self.rho = float(rho.mean())

    def metrics(self) -> dict[str, float]:
        """Return the mean count and value of all prompts, drawn or not, and the share that was visited."""
        return {
            "value/effective_n": float((self.alpha + self.beta).mean()),
            "value/all_prompts": float((self.alpha / (self.alpha + self.beta)).mean()),
            "value/visited": len(self.samples) / len(self.keys),
        }

    def state_dict(self) -> dict[str, Any]:
        """Return a few large tensors, which are written faster than many small ones."""
        samples = self.samples.values()
        return {
            "keys": self.keys,
            "alpha": self.alpha,
            "beta": self.beta,
            "estimated": self.estimated,
            "rho": self.rho,
            "visited": torch.tensor(list(self.samples), dtype=torch.int64),
            "num_ids": torch.tensor([len(sample.ids) for sample in samples], dtype=torch.int64),
            "num_logps": torch.tensor([len(sample.per_token_logps) for sample in samples], dtype=torch.int64),
            "ids": torch.cat([torch.zeros(0, dtype=torch.int32), *(sample.ids for sample in samples)]),
            "per_token_logps": torch.cat([torch.zeros(0), *(sample.per_token_logps for sample in samples)]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "keys" not in state:
            raise ValueError("it was made with another --value_tracker")
        if not torch.equal(state["keys"], self.keys):
            raise ValueError("its prompts are others than those of --data_path")
        self.alpha, self.beta = state["alpha"].clone(), state["beta"].clone()
        self.estimated, self.rho = state["estimated"], state["rho"]
        ids = state["ids"].split(state["num_ids"].tolist())
        logps = state["per_token_logps"].split(state["num_logps"].tolist())
        self.samples = {row: Sample(*parts) for row, *parts in zip(state["visited"].tolist(), ids, logps, strict=True)}


def drawn(values: Tensor, count: int, *, seed: str) -> list[int]:
    """Return ``count`` different prompts, each draw in proportion to ``draw_weights``; the same for the same seed.

    The largest of logarithms of weights plus Gumbel noise are such draws without replacement.

    Source: Kool and others, Stochastic Beams and Where to Find Them, arXiv 1903.06059, section 2.3.
    """
    generator = torch.Generator().manual_seed(random.Random(seed).getrandbits(63))
    uniform = torch.rand(len(values), generator=generator, dtype=torch.float64).clamp(min=1e-300)
    gumbel = -(-uniform.log()).log()
    return (draw_weights(values).log() + gumbel).topk(count).indices.tolist()


def draw_weights(values: Tensor) -> Tensor:
    """Return how much each prompt is preferred: the standard deviation of its outcome, and a little, [M]."""
    return (values * (1 - values)).sqrt() + LEAST_WEIGHT
