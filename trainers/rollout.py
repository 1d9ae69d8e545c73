"""Sample completions for all prompts of an optimizer batch in one decode loop.

Each prompt is prefilled once and its cache repeated; finished rows leave the batch once fewer than three in four are
live. Masks come from lengths, never from token values, so a pad or end token that the model writes is seen as sampled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from trainers.logps import position_ids_of

COMPACT_BELOW = 0.75  # share of live rows; selecting cache rows costs about one decode step


@dataclass(frozen=True)
class Rollout:
    """Sampled completions; those of one prompt are neighbours (p0, p0, p1, p1)."""

    sequence_ids: Tensor  # [N, S] prompts padded on the left, completions on the right
    attention_mask: Tensor  # [N, S]
    completion_ids: Tensor  # [N, T]
    completion_mask: Tensor  # [N, T] 1 up to and including the end token
    sampling_logps: Tensor  # [N, T] at the sampling temperature, 0 after the end
    lengths: Tensor  # [N]
    truncated: Tensor  # [N] True where max_gen_len came before the end token

    def rows(self, start: int, stop: int) -> "Rollout":
        """Return the rows from ``start`` to ``stop``, without the padding that none of them needs."""
        part = {name: value[start:stop] for name, value in vars(self).items()}
        longest = int(part["lengths"].max())
        spare_right = self.completion_ids.shape[1] - longest
        prompt_width = self.sequence_ids.shape[1] - self.completion_ids.shape[1]
        prompt_lengths = part["attention_mask"][:, :prompt_width].sum(-1)
        columns = slice(prompt_width - int(prompt_lengths.max()), self.sequence_ids.shape[1] - spare_right)
        for name in ("sequence_ids", "attention_mask"):
            part[name] = part[name][:, columns]
        for name in ("completion_ids", "completion_mask", "sampling_logps"):
            part[name] = part[name][:, :longest]
        return Rollout(**part)


class RolloutEngine(Protocol):
    """What samples completions, in this process or elsewhere."""

    def rollout(
        self, prompts: Sequence[list[int]], *, num_generations: int, max_gen_len: int, temperature: float
    ) -> Rollout:
        """Sample ``num_generations`` completions of each prompt; temperature 0 takes the likeliest token."""

    def update_policy(self, model: Any) -> None:
        """Sample from these weights from now on."""


class TorchRolloutEngine:
    """Sample from the live policy in this process, with the global random state of torch."""

    def __init__(self, model: Any, *, eos_token_id: int, pad_token_id: int) -> None:
        self.model = model
        self.eos_token_id = eos_token_id
        self.pad_token_id = pad_token_id

    def update_policy(self, model: Any) -> None:
        self.model = model

    @torch.no_grad()
    def rollout(
        self, prompts: Sequence[list[int]], *, num_generations: int, max_gen_len: int, temperature: float
    ) -> Rollout:
        was_training = self.model.training
        self.model.eval()
        try:
            return self._sample(prompts, num_generations, max_gen_len, temperature)
        finally:
            self.model.train(was_training)

    def _sample(
        self, prompts: Sequence[list[int]], num_generations: int, max_gen_len: int, temperature: float
    ) -> Rollout:
        device = next(self.model.parameters()).device
        prompt_ids, prompt_mask = pad_left(prompts, self.pad_token_id, device)  # [B, P]
        cache = DynamicCache(config=self.model.config)
        logits = self._forward(prompt_ids, prompt_mask, position_ids_of(prompt_mask), cache)  # [B, V]
        cache.batch_repeat_interleave(num_generations)
        logits = logits.repeat_interleave(num_generations, dim=0)  # [N, V]
        prompt_ids = prompt_ids.repeat_interleave(num_generations, dim=0)  # [N, P]
        prompt_mask = prompt_mask.repeat_interleave(num_generations, dim=0)

        count, width = prompt_ids.shape
        completion_ids = torch.full((count, max_gen_len), self.pad_token_id, device=device)
        sampling_logps = torch.zeros(count, max_gen_len, device=device)
        lengths = torch.full((count,), max_gen_len, device=device)
        truncated = torch.ones(count, dtype=torch.bool, device=device)
        rows = torch.arange(count, device=device)  # which completion each row of the cache is
        live = torch.ones(count, dtype=torch.bool, device=device)  # [rows]
        mask = torch.cat([prompt_mask, prompt_mask.new_ones(count, max_gen_len)], dim=1)  # [rows, P + max_gen_len]
        positions = prompt_mask.sum(-1)  # [rows]
        for step in range(max_gen_len):
            tokens, logps = sample_tokens(logits, temperature)  # [rows]
            completion_ids[rows[live], step] = tokens[live]
            sampling_logps[rows[live], step] = logps[live]
            ended = live & (tokens == self.eos_token_id)
            lengths[rows[ended]] = step + 1
            truncated[rows[ended]] = False
            live = live & ~ended
            num_live = int(live.sum())
            if num_live == 0 or step == max_gen_len - 1:
                break
            if num_live < COMPACT_BELOW * len(live):
                keep = live.nonzero().squeeze(-1)
                cache.batch_select_indices(keep)
                rows, tokens, mask, positions, live = (kept[keep] for kept in (rows, tokens, mask, positions, live))
            logits = self._forward(tokens[:, None], mask[:, : width + step + 1], positions[:, None], cache)
            positions = positions + 1

        longest = int(lengths.max())
        completion_mask = (torch.arange(longest, device=device) < lengths[:, None]).long()  # [N, T]
        completion_ids = completion_ids[:, :longest]
        return Rollout(
            sequence_ids=torch.cat([prompt_ids, completion_ids], dim=1),
            attention_mask=torch.cat([prompt_mask, completion_mask], dim=1),
            completion_ids=completion_ids,
            completion_mask=completion_mask,
            sampling_logps=sampling_logps[:, :longest],
            lengths=lengths,
            truncated=truncated,
        )

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:
        # transformers computes the experts' balance with a mask that a cached step has no logits for.
        routing = {"output_router_logits": False} if hasattr(self.model.config, "output_router_logits") else {}
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
            **routing,
        )
        return output.logits[:, -1].float()  # type: ignore[no-any-return]


def completion_texts(rollout: Rollout, tokenizer: Any) -> list[str]:
    """Return each completion as text, without its end token but with every other special token it wrote."""
    ends = (rollout.lengths - (~rollout.truncated).long()).tolist()
    ids = rollout.completion_ids.tolist()
    return [tokenizer.decode(row[:end], skip_special_tokens=False) for row, end in zip(ids, ends, strict=True)]


def pad_left(prompts: Sequence[list[int]], pad_token_id: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return prompts of different lengths as ids and mask, both [B, P], padding on the left."""
    width = max(map(len, prompts))
    ids = [[pad_token_id] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def sample_tokens(logits: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Return one token per row and its log-probability at ``temperature`` (0: the likeliest, scored at 1).

    Args:
        logits: float32, [N, V].

    Returns:
        Tokens and log-probabilities, both [N].
    """
    log_probs = (logits / (temperature or 1.0)).log_softmax(-1)
    tokens = logits.argmax(-1, keepdim=True) if temperature == 0 else torch.multinomial(log_probs.exp(), num_samples=1)
    return tokens.squeeze(-1), log_probs.gather(-1, tokens).squeeze(-1)
