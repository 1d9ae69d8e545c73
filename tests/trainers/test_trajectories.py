"""How a rollout is dealt to the optimizer steps that learn from it."""

import pytest
import torch

from tests.trainers.test_critic import rollout_of
from trainers.ranks import ALONE
from trainers.rewards import Rewards
from trainers.trajectories import Trajectories, critic_metrics, deal, judge, split_parts


class Second:
    """The second of two ranks, the first of which has three rows."""

    rank = 1

    def gather(self, value: int) -> list[int]:
        return [3, value]


def test_rows_are_dealt_in_turn_and_the_last_part_of_a_small_batch_stays_empty():
    assert deal([7, 8, 9, 4, 5], 2, ALONE) == {0: [7, 9, 5], 1: [8, 4]}
    assert deal([7], 2, ALONE) == {0: [7], 1: []}


@pytest.mark.parametrize("num_parts", [1, 2, 3, 4, 5])
def test_two_ranks_deal_the_rows_that_one_deals(num_parts):
    rows = [7, 8, 9, 4, 5]
    whole = deal(rows, num_parts, ALONE)
    first, second = deal(rows[:3], num_parts, ALONE), deal(rows[3:], num_parts, Second())
    assert {part: first[part] + second[part] for part in range(num_parts)} == whole


def judged() -> list[Trajectories]:
    """Return three completions, two of part 0 and one of part 1, one at a time; part 2 has none."""
    rollout = rollout_of([([3, 4], [5, 6, 7]), ([3], [5]), ([4], [8, 9])])
    rewards = Rewards(total=torch.tensor([1.0, 0.0, 0.5]), each={})
    cut = split_parts(rollout, rewards, sizes=[2, 1, 0], rows_at_once=1)
    values = [torch.tensor([[0.5, 0.4, 0.6]]), torch.tensor([[0.0]]), torch.tensor([[0.5, 0.5]])]
    return judge(cut, values, gamma=1.0, lam=0.95, ranks=ALONE)


def test_micro_batches_hold_one_part_each_and_advantages_are_whitened_over_all_of_them():
    batches = judged()
    assert [batch.part for batch in batches] == [0, 0, 1]
    assert [batch.rollout.completion_ids.tolist() for batch in batches] == [[[5, 6, 7]], [[5]], [[8, 9]]]
    raw = torch.tensor([0.451, 0.58, 0.4, 0.0, 0.0, 0.0])
    expected = (raw - raw.mean()) / raw.std(unbiased=False)
    whitened = torch.cat([batch.advantages.flatten() for batch in batches])
    assert whitened.tolist() == pytest.approx(expected.tolist(), abs=1e-5)


def test_what_the_critic_expected_and_what_came_are_means_over_all_tokens():
    values = critic_metrics(judged(), ALONE)
    assert values["value/mean"] == pytest.approx((0.5 + 0.4 + 0.6 + 0.0 + 0.5 + 0.5) / 6)
    assert values["value/returns"] == pytest.approx((0.951 + 0.98 + 1.0 + 0.0 + 0.5 + 0.5) / 6)
    assert 0.5 < values["explained_variance"] < 1.0


def test_a_micro_batch_survives_a_checkpoint_whole():
    batch = judged()[0]
    batch.old_per_token_logps = torch.tensor([[-0.1, -0.2, -0.3]])
    again = Trajectories.of(batch.state(), torch.device("cpu"))
    assert str(again) == str(batch)
