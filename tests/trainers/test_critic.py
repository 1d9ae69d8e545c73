"""The critic: a policy whose logits are values."""

import pytest
import torch

from tests.trainers.tiny import tiny_gpt2, tiny_moe, tiny_qwen3
from trainers.critic import build_critic, clipped_values, completion_values, value_loss
from trainers.rollout import Rollout

KINDS = {"qwen3": tiny_qwen3, "moe": tiny_moe, "gpt2": tiny_gpt2}


def rollout_of(rows: list[tuple[list[int], list[int]]], *, left: int = 0, right: int = 0, pad: int = 0) -> Rollout:
    """Return prompts and completions as a rollout, with that much more padding than they need."""
    width, length = max(len(p) for p, _ in rows) + left, max(len(c) for _, c in rows) + right
    ids = [[pad] * (width - len(p)) + p + c + [pad] * (length - len(c)) for p, c in rows]
    mask = [[0] * (width - len(p)) + [1] * (len(p) + len(c)) + [0] * (length - len(c)) for p, c in rows]
    sequence_ids, attention_mask = torch.tensor(ids), torch.tensor(mask)
    return Rollout(
        sequence_ids=sequence_ids,
        attention_mask=attention_mask,
        completion_ids=sequence_ids[:, width:],
        completion_mask=attention_mask[:, width:],
        sampling_logps=torch.zeros(len(rows), length),
        lengths=attention_mask[:, width:].sum(-1),
        truncated=torch.zeros(len(rows), dtype=torch.bool),
    )


def random_critic(kind: str = "qwen3"):
    """Return a critic that says something, with a last norm that is not the identity."""
    policy = KINDS[kind]()
    norm = policy.transformer.ln_f if kind == "gpt2" else policy.model.norm
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2.0)
    critic = build_critic(policy).eval()
    torch.nn.init.normal_(critic.get_output_embeddings().weight)
    torch.nn.init.normal_(critic.get_output_embeddings().bias)
    return critic


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_critic_expects_nothing_and_its_head_has_a_gradient(kind):
    policy = KINDS[kind]()
    critic = build_critic(policy)
    values, _ = completion_values(critic, rollout_of([([3, 4], [5, 6, 7])]))
    assert values.tolist() == [[0.0, 0.0, 0.0]]
    (values - 1).square().sum().backward()
    assert critic.get_output_embeddings().weight.grad.abs().max() > 0.0
    assert policy.get_output_embeddings().weight.shape[0] > 1, "the policy keeps its own layer"


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_the_value_before_a_token_is_the_head_on_the_last_norm_taken_once(kind):
    """Report 6, and which position a value stands at: the prefix alone, without the token."""
    critic = random_critic(kind)
    values, _ = completion_values(critic, rollout_of([([3, 4], [5, 6, 7])]))
    head = critic.get_output_embeddings()
    for count in (0, 1, 2):
        prefix = torch.tensor([[3, 4, 5, 6, 7][: 2 + count]])
        hidden = critic.base_model(input_ids=prefix).last_hidden_state[:, -1]  # [1, H], normed by the backbone
        assert values[0, count].item() == pytest.approx(float(head.weight @ hidden[0] + head.bias), abs=1e-5)
        norm = critic.transformer.ln_f if kind == "gpt2" else critic.model.norm
        assert abs(float(head.weight @ norm(hidden)[0] + head.bias) - values[0, count].item()) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pad", [0, 7])
def test_padding_and_the_other_rows_change_no_value(kind, pad):
    """A pad token that is also the end token (7) hides nothing."""
    critic = random_critic(kind)
    alone, _ = completion_values(critic, rollout_of([([3, 4], [5, 6, 7])]))
    rows = [([3, 4], [5, 6, 7]), ([8, 9, 10, 11, 12], [13, 14, 15, 16])]
    padded, _ = completion_values(critic, rollout_of(rows, left=3, right=2, pad=pad))
    assert (padded[0, :3] - alone[0]).abs().max() < 1e-5
    assert padded[0, 3:].tolist() == [0.0, 0.0, 0.0]


@torch.no_grad()
def test_a_mixture_of_experts_brings_its_balancing_loss_and_a_dense_model_none():
    rollout = rollout_of([([3, 4], [5, 6, 7])])
    assert 0.01 <= float(completion_values(random_critic("moe"), rollout)[1]) < 0.04
    assert completion_values(random_critic("qwen3"), rollout)[1] == 0.0


def test_the_worse_of_value_and_clipped_value_counts():
    values, old, returns = torch.tensor([0.5, 0.1, -0.5]), torch.zeros(3), torch.tensor([1.0, 1.0, 1.0])
    loss = value_loss(values, old, returns, cliprange_value=0.2)
    assert loss.tolist() == pytest.approx([0.5 * 0.8**2, 0.5 * 0.9**2, 0.5 * 1.5**2])
    assert clipped_values(values, old, returns, cliprange_value=0.2).tolist() == [1.0, 0.0, 0.0]


def test_a_value_that_is_held_back_has_no_gradient():
    values = torch.tensor([0.5, 0.1, -0.5], requires_grad=True)
    value_loss(values, torch.zeros(3), torch.ones(3), cliprange_value=0.2).sum().backward()
    assert values.grad.tolist() == pytest.approx([0.0, 0.1 - 1.0, -0.5 - 1.0])
