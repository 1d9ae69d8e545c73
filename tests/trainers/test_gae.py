"""From rewards to advantages, on values worked out by hand."""

import pytest
import torch

from trainers.gae import explained_variance, gae, terminal_rewards, token_moments, whiten


def estimate(rewards, values, mask=None, *, gamma=1.0, lam=0.95):
    mask = torch.ones_like(rewards) if mask is None else mask
    return gae(rewards, values, mask, gamma=gamma, lam=lam)


def test_a_reward_at_the_end_spreads_back_over_the_tokens():
    advantages, returns = estimate(torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.5, 0.4, 0.6]]))
    assert advantages.tolist()[0] == pytest.approx([0.451, 0.58, 0.4])
    assert returns.tolist()[0] == pytest.approx([0.951, 0.98, 1.0])


def test_what_lies_outside_the_mask_is_never_looked_at():
    """Report 31: the masked value made 5.70 and 6.00 of it."""
    advantages, returns = estimate(
        torch.tensor([[0.0, 1.0, float("nan")]]), torch.tensor([[0.0, 0.0, 100.0]]), torch.tensor([[1, 1, 0]])
    )
    assert advantages.tolist()[0] == pytest.approx([0.95, 1.0, 0.0])
    assert returns.tolist()[0] == pytest.approx([0.95, 1.0, 0.0])


def test_a_gap_in_the_mask_is_skipped():
    gap, mask = torch.tensor([[0.5, 7.0, 0.4, 0.6]]), torch.tensor([[1, 0, 1, 1]])
    advantages, _ = estimate(torch.tensor([[0.0, 7.0, 0.0, 1.0]]), gap, mask)
    assert advantages.tolist()[0] == pytest.approx([0.451, 0.0, 0.58, 0.4])


@pytest.mark.parametrize(
    ("lam", "expected"),
    [
        (0.0, [0.5 * 0.4 - 0.5, 0.5 * 0.6 - 0.4, 1.0 - 0.6]),  # the next value alone
        (1.0, [0.25 - 0.5, 0.5 - 0.4, 1.0 - 0.6]),  # the discounted reward alone
    ],
)
def test_lambda_chooses_between_the_next_value_and_the_rewards(lam, expected):
    advantages, _ = estimate(torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.5, 0.4, 0.6]]), gamma=0.5, lam=lam)
    assert advantages.tolist()[0] == pytest.approx(expected)


def test_equal_rewards_and_a_critic_that_knows_them_leave_no_advantage():
    advantages, returns = estimate(torch.tensor([[0.0, 0.7], [0.7, 0.0]]), torch.full((2, 2), 0.7), torch.ones(2, 2))
    assert advantages[0].tolist() == [0.0, 0.0]
    assert returns[0].tolist() == pytest.approx([0.7, 0.7])
    mean, variance = token_moments(advantages[0])
    assert whiten(advantages[:1], torch.ones(1, 2), mean=mean, variance=variance).tolist() == [[0.0, 0.0]]


def test_the_reward_comes_with_the_last_token_and_not_with_the_padding_after_it():
    """Report 32: [t0, t1, EOS, PAD, PAD] is rewarded at index 2; a truncated completion at its last token."""
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    assert terminal_rewards(torch.tensor([1.0, 0.5, 9.0]), mask).tolist() == [
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.5],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ]


def test_an_empty_completion_has_no_advantage_and_no_nan():
    advantages, returns = estimate(torch.zeros(1, 3), torch.tensor([[1.0, 2.0, 3.0]]), torch.zeros(1, 3))
    assert advantages.tolist() == returns.tolist() == [[0.0, 0.0, 0.0]]
    assert token_moments(torch.empty(0)) == (0.0, 0.0)


def test_whitened_tokens_have_mean_0_and_population_variance_1():
    values, mask = torch.tensor([[1.0, 3.0], [5.0, 99.0]]), torch.tensor([[1, 1], [1, 0]])
    mean, variance = token_moments(values[mask.bool()])
    assert (mean, variance) == pytest.approx((3.0, 8 / 3))
    whitened = whiten(values, mask, mean=mean, variance=variance)
    assert whitened.flatten().tolist() == pytest.approx([-1.22474, 0.0, 1.22474, 0.0], abs=1e-5)


def test_equal_advantages_that_float32_cannot_write_become_exactly_0():
    """Report 25, for PPO."""
    advantages = torch.full((1, 7), 0.7)
    mean, variance = token_moments(advantages.flatten())
    assert whiten(advantages, torch.ones(1, 7), mean=mean, variance=variance).tolist() == [[0.0] * 7]


def test_rounding_noise_is_not_blown_up_to_unit_size():
    advantages = torch.tensor([[0.7, 0.7 + 6e-8]])
    mean, variance = token_moments(advantages.flatten())
    assert whiten(advantages, torch.ones(1, 2), mean=mean, variance=variance).abs().max() < 1e-3


def test_explained_variance_is_1_for_a_critic_that_knows_0_for_one_that_guesses_the_mean_and_without_variance():
    returns = torch.tensor([0.0, 1.0, 2.0])
    assert explained_variance(returns + 5, returns) == pytest.approx(1.0), "a constant offset has no variance"
    assert explained_variance(torch.ones(3), returns) == pytest.approx(0.0)
    assert explained_variance(-returns, returns) == pytest.approx(-3.0)
    assert explained_variance(torch.tensor([0.0, 1.0]), torch.full((2,), 0.7)) == 0.0
