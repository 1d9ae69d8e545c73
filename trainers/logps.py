"""Log-probabilities of sampled completions under a model, at the temperature they were sampled with.

``grouped_logps`` reads each prompt once for all its completions; it gives what ``completion_logps`` gives, with the
same gradient, for a fraction of the tokens.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from trainers.models import moe_loss, moe_options

ENTROPY_ELEMENTS = 2**24  # logits whose softmax is held at once


@dataclass(frozen=True)
class CompletionLogps:
    """What one forward pass says about the completions of a batch."""

    per_token_logps: Tensor  # [N, T], 0 after the end of a completion
    entropy: Tensor  # [N, T], no gradient, 0 after the end
    aux_loss: Tensor | float  # weighted load balance of a mixture of experts, 0 for a dense model


def selective_log_softmax(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the log-probability of each id, computed in float32.

    Args:
        logits: [..., V].
        ids: [...].
    """
    logits = logits.float()
    return logits.gather(-1, ids.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


def position_ids_of(attention_mask: Tensor) -> Tensor:
    """Return each token's distance from its row's first real token, [N, S]; padding on the left gets 0."""
    return (attention_mask.long().cumsum(-1) - 1).clamp(min=0)


def completion_logps(
    model: Any, input_ids: Tensor, attention_mask: Tensor, num_completion_tokens: int, temperature: float
) -> CompletionLogps:
    """Score the last ``num_completion_tokens`` of each row.

    Args:
        model: A causal language model; one that ignores ``logits_to_keep`` is served too.
        input_ids: Prompts padded on the left, then completions padded on the right, [N, S].
        attention_mask: 1 on real tokens, [N, S].
        num_completion_tokens: T.
        temperature: Logits are divided by it before the softmax, as they were when sampling.
    """
    length = num_completion_tokens
    output = model(
        input_ids=input_ids,
        attention_mask=attention_mask,
        position_ids=position_ids_of(attention_mask),
        logits_to_keep=length + 1,
        use_cache=False,
        **moe_options(model),
    )
    # Position t predicts token t + 1, hence the shift by one.
    return _scored(
        output.logits[:, -length - 1 : -1],
        input_ids[:, -length:],
        attention_mask[:, -length:],
        temperature,
        aux_loss=moe_loss(model, output),
    )


def grouped_logps(
    model: Any,
    input_ids: Tensor,
    attention_mask: Tensor,
    num_completion_tokens: int,
    temperature: float,
    *,
    num_generations: int,
) -> CompletionLogps:
    """Score as ``completion_logps`` does, where each ``num_generations`` neighbours are completions of one prompt.

    The prompts are read once, [B, P], and their keys and values repeated for the completions, which costs B*P + B*G*T
    tokens instead of B*G*(P + T). A mixture of experts is read as a whole: its balance counts every token; so is a
    prompt that has a single completion.
    """
    if num_generations == 1 or moe_options(model):
        return completion_logps(model, input_ids, attention_mask, num_completion_tokens, temperature)
    width = input_ids.shape[1] - num_completion_tokens  # P
    positions = position_ids_of(attention_mask)
    cache = DynamicCache(config=model.config)
    output = model(
        input_ids=input_ids[::num_generations, :width],
        attention_mask=attention_mask[::num_generations, :width],
        position_ids=positions[::num_generations, :width],
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    logits = output.logits[:, -1:].repeat_interleave(num_generations, dim=0)  # [N, 1, V]
    if num_completion_tokens > 1:
        cache.batch_repeat_interleave(num_generations)
        output = model(
            input_ids=input_ids[:, width:-1],
            attention_mask=attention_mask[:, :-1],
            position_ids=positions[:, width:-1],
            cache=cache,
            use_cache=True,
        )
        logits = torch.cat([logits, output.logits], dim=1)  # [N, T, V]
    return _scored(logits, input_ids[:, width:], attention_mask[:, width:], temperature)


def _scored(
    logits: Tensor,
    completion_ids: Tensor,
    completion_mask: Tensor,
    temperature: float,
    *,
    aux_loss: Tensor | float = 0.0,
) -> CompletionLogps:
    logits = logits.float() / temperature  # [N, T, V]
    ended = completion_mask == 0  # [N, T]
    return CompletionLogps(
        per_token_logps=selective_log_softmax(logits, completion_ids).masked_fill(ended, 0.0),
        entropy=entropy_of(logits.detach()).masked_fill(ended, 0.0),
        aux_loss=aux_loss,
    )


@torch.no_grad()
def entropy_of(logits: Tensor) -> Tensor:
    """Return the entropy of each position's distribution in nats, [N, T] from [N, T, V], a few rows at a time."""
    rows = max(1, ENTROPY_ELEMENTS // logits[0].numel())
    pieces = []
    for chunk in logits.split(rows):
        log_probs = chunk.log_softmax(-1)
        pieces.append(-(log_probs.exp() * log_probs).sum(-1))
    return torch.cat(pieces)
