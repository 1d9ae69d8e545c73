import pytest
import torch

from trainers.configs import SPOConfig
from trainers.ranks import ALONE
from trainers.value_tracker import GlobalTracker, Memory, RewardScale, Sample, Visits, whitened

SCRIPT = Memory(rho_min=0.5, rho_max=0.96, kl_half=0.06)
RECIPE = Memory(rho_min=0.875, rho_max=0.96, kl_half=0.06)
UNIT = RewardScale(0.0, 1.0)


def visits(*scores: float, logp: float = -1.0) -> Visits:
    """Return what completions of two tokens say that earned ``scores``."""
    sample = Sample(torch.tensor([1, 2, 3], dtype=torch.int32), torch.tensor([logp - 0.5, logp + 0.5]))
    count = len(scores)
    return Visits(list(range(count)), torch.tensor(scores).double(), torch.zeros(count), [sample] * count)


def test_memory_halves_for_each_half_life_of_drift_within_its_bounds():
    drift = torch.tensor([0.0, 0.006, 0.03, 0.06], dtype=torch.float64)
    assert RECIPE.kept(drift).tolist() == [0.96, pytest.approx(0.93303, abs=1e-5), 0.875, 0.875]
    assert SCRIPT.kept(drift).tolist() == pytest.approx([0.96, 0.93303, 0.70711, 0.5], abs=1e-5)


@pytest.mark.parametrize(
    ("flags", "rho_min", "prior"),
    [
        ({}, 0.5, 2.0),
        ({"value_tracker": "prompt"}, 0.875, 8.0),
        ({"value_tracker": "prompt", "rho_min": 0.75}, 0.75, 4.0),
    ],
)
def test_each_tracker_has_its_own_smallest_memory_unless_told(flags, rho_min, prior):
    memory = Memory.of(SPOConfig(**flags))
    assert (memory.rho_min, memory.rho_max, memory.kl_half, memory.prior) == (rho_min, 0.96, 0.06, prior)


@pytest.mark.parametrize("flags", [{"rho_max": 0.4}, {"value_tracker": "prompt", "rho_max": 0.8}])
def test_a_largest_memory_below_the_smallest_is_refused(flags):
    with pytest.raises(ValueError, match="must be at least rho_min"):
        SPOConfig(**flags)


def test_the_reward_scale_is_the_sum_of_the_enabled_functions_bounds():
    """At worst -0.5 - 0.75 - 0.5 - 3, at best 0.5 + 1.25 + 0 + 3."""
    scale = RewardScale.of({"length": 1.0, "thinking": 1.0, "repetition": 1.0, "reward_model": 1.0})
    assert (scale.low, scale.high) == (-4.75, 4.75)
    assert RewardScale.of({"answer": 2.0}) == RewardScale(0.0, 2.0)


def test_a_negative_weight_swaps_the_bounds():
    assert RewardScale.of({"answer": -1.0, "length": 2.0}) == RewardScale(-2.0, 1.0)


def test_rewards_beyond_the_bounds_count_as_the_bounds():
    scale = RewardScale(-3.0, 3.0)
    assert scale.to_unit(torch.tensor([-9.0, -3.0, 0.0, 1.5, 9.0])).tolist() == [0.0, 0.0, 0.5, 0.75, 1.0]
    assert scale.to_reward(torch.tensor([0.0, 0.5, 0.75, 1.0])).tolist() == [-3.0, 0.0, 1.5, 3.0]


def test_the_global_tracker_starts_as_the_script_s_at_one_and_one():
    tracker = GlobalTracker(SCRIPT)
    assert (tracker.alpha, tracker.beta, tracker.rho) == (1.0, 1.0, 0.9)
    assert tracker.values([3, 4]).tolist() == [0.5, 0.5]


def test_the_first_update_keeps_nine_tenths():
    tracker = GlobalTracker(SCRIPT)
    tracker.update(visits(1.0, 0.5))
    assert (tracker.alpha, tracker.beta) == (pytest.approx(1.65), pytest.approx(1.15))


def test_later_updates_keep_less_the_further_the_mean_log_probability_moved():
    """0.03 nats between two rollouts: half a half-life, 0.70711 of 1.9 and 0.9 is left."""
    tracker = GlobalTracker(SCRIPT)
    tracker.update(visits(1.0, logp=-1.0))
    tracker.update(visits(0.0, logp=-1.03))
    assert tracker.rho == pytest.approx(0.70711, abs=1e-5)
    assert tracker.alpha == pytest.approx(0.70711 * 1.9, abs=1e-5)
    assert tracker.beta == pytest.approx(0.70711 * 0.9 + 1, abs=1e-5)


def test_the_mean_log_probability_is_over_tokens_not_over_completions():
    tracker = GlobalTracker(SCRIPT)
    ids = torch.tensor([1, 2], dtype=torch.int32)
    samples = [Sample(ids, torch.tensor([-1.0, -1.0, -1.0])), Sample(ids, torch.tensor([-5.0]))]
    tracker.update(Visits([0, 1], torch.zeros(2).double(), torch.zeros(2), samples))
    assert tracker.mean_logp == pytest.approx(-2.0)


def test_the_value_stays_within_its_bounds_when_rewards_exceed_theirs():
    """Report 49: the script's value reaches 1.25 with rewards of 4.5 on a scale that ends at 3."""
    tracker, scale = GlobalTracker(SCRIPT), RewardScale(-3.0, 3.0)
    for step in range(30):
        tracker.update(visits(float(scale.to_unit(torch.tensor([9.0]))), logp=-1.0 - step))
    assert tracker.rho == 0.5
    assert (tracker.alpha, tracker.beta) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-6))
    assert 0.0 <= float(tracker.values([0])) <= 1.0


def test_global_advantages_are_rewards_minus_the_value_in_reward_units_within_five():
    tracker = GlobalTracker(SCRIPT)
    advantages = tracker.advantages(
        torch.tensor([1.0, -2.0, 9.0, -9.0]), tracker.values(range(4)), RewardScale(-4.25, 4.75), ALONE
    )
    assert advantages.tolist() == [0.75, -2.25, 5.0, -5.0]


def test_global_advantages_are_not_whitened():
    tracker = GlobalTracker(SCRIPT)
    assert tracker.advantages(torch.tensor([1.0, 1.0]), tracker.values([0, 1]), UNIT, ALONE).tolist() == [0.5, 0.5]


def test_a_global_tracker_goes_on_from_its_state():
    one, other = GlobalTracker(SCRIPT), GlobalTracker(SCRIPT)
    one.update(visits(1.0))
    other.load_state_dict(one.state_dict())
    for tracker in (one, other):
        tracker.update(visits(0.25, logp=-1.01))
    assert one.state_dict() == other.state_dict()


def test_whitened_advantages_have_mean_zero_and_deviation_one():
    raw = torch.tensor([1.0, 3.0], dtype=torch.float64)
    assert whitened(raw, among=raw).tolist() == pytest.approx([-1.0, 1.0])


def test_a_part_of_a_batch_is_whitened_with_the_whole_batch():
    whole = torch.tensor([1.0, 3.0, 3.0, 1.0], dtype=torch.float64)
    assert whitened(whole[:1], among=whole).tolist() == pytest.approx([-1.0])


def test_advantages_that_differ_by_rounding_alone_are_exactly_zero():
    raw = torch.tensor([0.7, 0.1 * 7, 0.7], dtype=torch.float64)
    assert raw.std(unbiased=False) > 0
    assert whitened(raw, among=raw).tolist() == [0.0, 0.0, 0.0]
    assert whitened(raw[:1], among=raw[:1]).tolist() == [0.0], "a batch of one"
