import pytest
import torch

from trainers.experience import TokenSums
from trainers.ranks import ALONE
from trainers.rollout_records import RolloutWatch, length_metrics, reward_metrics


def test_lengths_count_truncated_completions_and_also_those_that_ended_on_their_own():
    """Report 16: rows of 3 tokens (ended) and 5 (truncated)."""
    assert length_metrics(torch.tensor([3, 5]), torch.tensor([False, True])) == {
        "completions/mean_length": 4.0,
        "completions/clipped_ratio": 0.5,
        "completions/mean_terminated_length": 3.0,
    }


def test_lengths_are_numbers_when_no_completion_ended():
    assert length_metrics(torch.tensor([5, 5]), torch.tensor([True, True]))["completions/mean_terminated_length"] == 0.0


def test_reward_metrics_of_a_group_that_differs_and_one_that_does_not():
    total = torch.tensor([1.0, 0.0, 0.7, 0.7])
    assert reward_metrics(total, {"answer": torch.tensor([1.0, 0.0, 0.0, 0.0])}, num_generations=2) == {
        "reward": pytest.approx(0.6),
        "reward_std": pytest.approx(0.25),
        "frac_reward_zero_std": 0.5,
        "rewards/answer/mean": 0.25,
    }


def test_the_rewards_of_single_completions_spread_over_the_batch():
    total = torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert reward_metrics(total, {"answer": total}, num_generations=1) == {
        "reward": 0.5,
        "reward_std": 0.5,
        "rewards/answer/mean": 0.5,
    }


def test_the_share_of_saturated_scores_counts_those_at_the_limits_of_the_reward_model_alone():
    each = {"reward_model": torch.tensor([3.0, -3.0, 2.9, 0.0]), "length": torch.tensor([5.0, 5.0, 5.0, 5.0])}
    metrics = reward_metrics(torch.tensor([1.0, 0.0, 0.0, 0.0]), each, num_generations=2)
    assert metrics["reward_model/saturated_ratio"] == 0.5
    assert "reward_model/saturated_ratio" not in reward_metrics(torch.tensor([1.0, 0.0]), {}, num_generations=2)


def test_a_reward_model_at_its_limits_for_ten_steps_is_told_once():
    lines: list[str] = []
    watch = RolloutWatch(lines.append)
    for _ in range(20):
        watch.look({"reward_model/saturated_ratio": 0.6})
    (line,) = lines
    assert line.startswith(
        "warning: for 10 steps, the reward model scored most completions at or beyond +-3, where all"
    )


def test_token_means_weigh_every_token_alike_over_micro_batches_of_different_size():
    sums = TokenSums()
    sums.add(torch.tensor([[1, 1, 1, 1]]), kl=torch.tensor([[1.0, 1.0, 1.0, 1.0]]))
    sums.add(torch.tensor([[1, 0]]), kl=torch.tensor([[3.0, 99.0]]))
    sums.add(torch.tensor([[1, 1]]), entropy=torch.tensor([[2.0, 4.0]]))
    sums.add_largest(torch.tensor([[1, 0]]), difference=torch.tensor([[0.25, 7.0]]))
    assert sums.values(ALONE) == {"kl": pytest.approx(1.4), "entropy": 3.0, "difference": 0.25}


def test_token_means_without_a_token_are_zero():
    sums = TokenSums()
    sums.add(torch.tensor([[0, 0]]), kl=torch.tensor([[5.0, 5.0]]))
    assert sums.values(ALONE) == {"kl": 0.0}


def watched(*steps: tuple[float, float]) -> list[str]:
    lines: list[str] = []
    watch = RolloutWatch(lines.append)
    for constant, clipped in steps:
        watch.look({"frac_reward_zero_std": constant, "completions/clipped_ratio": clipped})
    return lines


def test_a_trouble_of_ten_steps_is_told_once():
    assert watched(*[(0.9, 0.0)] * 9) == []
    (line,) = watched(*[(0.9, 0.0)] * 30)
    assert line.startswith("warning: for 10 steps, more than 80 % of the groups had completions of one reward")
    (line,) = watched(*[(0.0, 0.6)] * 30)
    assert "--max_gen_len" in line


def test_a_trouble_that_pauses_is_counted_anew():
    assert watched(*[(0.9, 0.0)] * 9, (0.8, 0.0), *[(0.9, 0.0)] * 9) == []


def test_what_is_not_measured_is_no_trouble():
    lines: list[str] = []
    watch = RolloutWatch(lines.append)
    for _ in range(20):
        watch.look({"completions/clipped_ratio": 0.0})
    assert lines == []


def test_a_rank_without_a_micro_batch_in_a_step_knows_the_means_of_the_others():
    class Others:
        def gather(self, value):
            return [({"kl": (6.0, 2)}, {"gap": 0.5}), value]

    assert TokenSums().values(Others()) == {"kl": 3.0, "gap": 0.5}
