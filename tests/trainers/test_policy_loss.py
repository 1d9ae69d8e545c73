import pytest
import torch

from trainers.policy_loss import cispo_loss, clipped_loss, per_token_kl, sequence_mean


def logps(*values: float) -> torch.Tensor:
    return torch.tensor([values], requires_grad=True)


def old_for_ratio(ratio: float, new: float) -> torch.Tensor:
    return torch.tensor([[new]]) - torch.tensor(ratio).log()


@pytest.mark.parametrize(
    ("policy", "reference", "kl"), [(-1.0, -2.0, 0.36788), (-2.0, -1.0, 0.71828), (-1.5, -1.5, 0.0)]
)
def test_the_k3_estimate_of_worked_log_probabilities(policy, reference, kl):
    assert per_token_kl(torch.tensor([[policy]]), torch.tensor([[reference]])).item() == pytest.approx(kl, abs=1e-5)


@pytest.mark.parametrize(("advantage", "loss", "gradient"), [(1.0, -1.2, 0.0), (-1.0, 1.5, 1.5)])
def test_a_ratio_above_the_clip_is_cut_only_where_it_would_gain(advantage, loss, gradient):
    policy = logps(-0.5)
    value = clipped_loss(policy, old_for_ratio(1.5, -0.5), torch.tensor([advantage]), epsilon=0.2)
    value.sum().backward()
    assert value.item() == pytest.approx(loss, abs=1e-6)
    assert policy.grad.item() == pytest.approx(gradient, abs=1e-6)


@pytest.mark.parametrize(("advantage", "loss", "gradient"), [(1.0, 2.5, -5.0), (-1.0, -2.5, 5.0)])
def test_cispo_caps_the_weight_and_never_cuts_the_gradient(advantage, loss, gradient):
    policy = logps(-0.5)
    value = cispo_loss(policy, old_for_ratio(6.0, -0.5), torch.tensor([advantage]), epsilon_high=5.0)
    value.sum().backward()
    assert value.item() == pytest.approx(loss, abs=1e-5)
    assert policy.grad.item() == pytest.approx(gradient, abs=1e-5)


def test_on_policy_both_losses_have_the_same_gradient_and_different_values():
    advantages = torch.tensor([0.7])
    grpo, cispo = logps(-0.5, -1.5), logps(-0.5, -1.5)
    grpo_value = clipped_loss(grpo, grpo.detach(), advantages, epsilon=0.2)
    cispo_value = cispo_loss(cispo, cispo.detach(), advantages, epsilon_high=5.0)
    grpo_value.sum().backward()
    cispo_value.sum().backward()
    assert grpo.grad[0].tolist() == pytest.approx([-0.7, -0.7])
    assert cispo.grad.tolist() == grpo.grad.tolist()
    assert grpo_value[0].tolist() == pytest.approx([-0.7, -0.7])
    assert cispo_value[0].tolist() == pytest.approx([0.35, 1.05])


def test_the_ratio_is_taken_token_by_token_not_for_the_whole_sequence():
    loss = clipped_loss(torch.tensor([[0.1, 0.2]]), torch.zeros(1, 2), torch.tensor([-1.0]), epsilon=0.5)
    assert loss[0].tolist() == pytest.approx([1.10517, 1.22140], abs=1e-5)


def test_a_mean_over_tokens_then_sequences_gives_the_long_row_no_more_weight():
    per_token = torch.tensor([[1.0, 1.0, 1.0, 1.0], [3.0, 0.0, 0.0, 0.0]])
    means = sequence_mean(per_token, torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]))
    assert means.tolist() == [1.0, 3.0]
    assert means.mean().item() == 2.0


def test_a_row_without_tokens_is_zero_and_has_no_gradient():
    per_token = logps(2.0, 4.0)
    mean = sequence_mean(per_token, torch.tensor([[0, 0]]))
    mean.sum().backward()
    assert mean.tolist() == [0.0]
    assert per_token.grad.tolist() == [[0.0, 0.0]]


def test_a_masked_token_does_not_count_in_the_mean():
    assert sequence_mean(torch.tensor([[2.0, 8.0]]), torch.tensor([[1, 0]])).item() == 2.0
