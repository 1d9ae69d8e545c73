"""Log-probabilities of sampled completions under a model, at the temperature they were sampled with."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainers.models import moe_loss, moe_options

ENTROPY_ELEMENTS = 2**24  # logits whose softmax is held at once


@dataclass(frozen=True)
class CompletionLogps:
    """What one forward pass says about the completions of a batch."""

    per_token_logps: Tensor       # [N, T], 0 after the end of a completion
    entropy: Tensor               # [N, T], no gradient, 0 after the end
    aux_loss: Tensor | float      # weighted load balance of a mixture of experts, 0 for a dense model


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


def completion_logps(model: Any, input_ids: Tensor, attention_mask: Tensor, num_completion_tokens: int,
                     temperature: float) -> CompletionLogps:
    """Score the last ``num_completion_tokens`` of each row.

    Args:
        model: A causal language model; one that ignores ``logits_to_keep`` is served too.
        input_ids: Prompts padded on the left, then completions padded on the right, [N, S].
        attention_mask: 1 on real tokens, [N, S].
        num_completion_tokens: T.
        temperature: Logits are divided by it before the softmax, as they were when sampling.
    """
    length = num_completion_tokens
    output = model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids_of(attention_mask),
                   logits_to_keep=length + 1, use_cache=False, **moe_options(model))
    # Position t predicts token t + 1, hence the shift by one.
    logits = output.logits[:, -length - 1:-1].float() / temperature      # [N, T, V]
    mask = attention_mask[:, -length:].bool()                            # [N, T]
    return CompletionLogps(
        per_token_logps=selective_log_softmax(logits, input_ids[:, -length:]).masked_fill(~mask, 0.0),
        entropy=entropy_of(logits.detach()).masked_fill(~mask, 0.0),
        aux_loss=moe_loss(model, output))


@torch.no_grad()
def entropy_of(logits: Tensor) -> Tensor:
    """Return the entropy of each position's distribution in nats, [N, T] from [N, T, V], a few rows at a time."""
    rows = max(1, ENTROPY_ELEMENTS // logits[0].numel())
    pieces = []
    for chunk in logits.split(rows):
        log_probs = chunk.log_softmax(-1)
        pieces.append(-(log_probs.exp() * log_probs).sum(-1))
    return torch.cat(pieces)
