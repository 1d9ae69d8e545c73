"""The parts of GRPO, each on its own."""

import math

import pytest
import torch
from transformers import AutoTokenizer

from dataset.formats import Prompt
from tests.trainers.grpo_runs import TOKENIZER
from trainers.configs import GRPOConfig
from trainers.grpo import group_advantages, held_back, policy_loss
from trainers.prompting import samples_due, tokenize


def test_the_one_right_completion_of_four_is_one_point_seven_deviations_ahead():
    advantages = group_advantages(torch.tensor([1.0, 0.0, 0.0, 0.0]), num_generations=4)
    assert advantages.tolist() == pytest.approx([1.73165, -0.57722, -0.57722, -0.57722], abs=1e-5)


def test_equal_rewards_give_zero_advantages():
    advantages = group_advantages(torch.tensor([1.0, 0.0, 5.0, 5.0]), num_generations=2)
    assert advantages[2:].tolist() == [0.0, 0.0]


def test_equal_rewards_that_float32_cannot_write_give_exactly_zero():
    """Report 25: the old script made +-0.968 of this rounding noise."""
    advantages = group_advantages(torch.tensor([0.7] * 8 + [0.5] * 8), num_generations=8)
    assert advantages.tolist() == [0.0] * 16


def test_each_prompt_is_compared_with_its_own_completions_only():
    near, far = group_advantages(torch.tensor([0.0, 1.0, 100.0, 101.0]), num_generations=2).view(2, 2).tolist()
    assert near == far == pytest.approx([-0.9998, 0.9998], abs=1e-4)


def test_the_loss_type_chooses_between_clipping_the_ratio_and_capping_its_weight():
    logps, old = torch.tensor([[-0.5]]), torch.tensor([[-0.5 - math.log(6)]])  # ratio 6
    gain = torch.tensor([1.0])
    assert policy_loss(logps, old, gain, GRPOConfig(loss_type="grpo")).item() == pytest.approx(-1.2, abs=1e-5)
    assert policy_loss(logps, old, gain, GRPOConfig(loss_type="cispo")).item() == pytest.approx(2.5, abs=1e-5)


def test_a_token_counts_as_clipped_only_where_the_bound_holds_it_back():
    logps = torch.log(torch.tensor([[1.5, 0.5], [1.5, 0.5], [1.5, 0.5]]))
    advantages = torch.tensor([1.0, -1.0, 0.0])
    clipped = held_back(logps, torch.zeros(3, 2), advantages, GRPOConfig(epsilon=0.2))
    assert clipped.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_the_thinking_ratio_opens_the_tag_for_that_share_of_prompts_and_the_same_ones_again():
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    prompts = [Prompt(messages=[{"role": "user", "content": "07+38="}], answer="045")] * 200

    def opened(ratio, step=1):
        asked = tokenize(prompts, tokenizer, GRPOConfig(thinking_ratio=ratio), step=step)
        return [tokenizer.decode(ids).endswith("assistant\n<think>\n") for ids in asked]

    assert sum(opened(0.0)) == 0
    assert sum(opened(1.0)) == 200
    assert 70 <= sum(opened(0.5)) <= 130
    assert opened(0.5) == opened(0.5)
    assert opened(0.5) != opened(0.5, step=2)


@pytest.mark.parametrize(("num_iterations", "recorded"), [(1, [1, 4, 8, 12]), (2, [1, 3, 7, 11])])
def test_samples_are_kept_of_the_first_rollout_and_of_the_one_in_which_an_interval_ends(num_iterations, recorded):
    config = GRPOConfig(sample_interval=4, num_iterations=num_iterations)
    assert [
        step for step in range(1, 13, num_iterations) if samples_due(config, step, updates_per_rollout=num_iterations)
    ] == recorded
