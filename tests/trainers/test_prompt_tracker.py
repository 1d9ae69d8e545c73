import json
from collections import Counter

import pytest
import torch

from dataset.prompts import PromptRows
from trainers.prompt_tracker import DistinctPrompts, PromptTracker, draw_weights, drawn
from trainers.ranks import ALONE
from trainers.schedule import Schedule
from trainers.value_tracker import Memory, RewardScale, Sample, Visits

RECIPE = Memory(rho_min=0.875, rho_max=0.96, kl_half=0.06)
UNIT = RewardScale(0.0, 1.0)


def tracker_of(count: int, seed: int = 42) -> PromptTracker:
    return PromptTracker(torch.arange(count), RECIPE, seed=seed)


def estimated(*successes: float) -> PromptTracker:
    tracker = tracker_of(len(successes))
    tracker.estimate(torch.tensor(successes).double(), 8)
    return tracker


def sample(*logps: float) -> Sample:
    return Sample(torch.arange(len(logps) + 1, dtype=torch.int32), torch.tensor(logps))


def visit(row: int, score: float, drift: float) -> Visits:
    return Visits([row], torch.tensor([score]).double(), torch.tensor([drift]).double(), [sample(-1.0)])


def test_six_of_eight_offline_successes_are_the_recipe_s_smoothed_counts():
    """Facts 2.4."""
    tracker = estimated(0.0, 6.0)
    assert tracker.alpha.tolist() == pytest.approx([0.44444, 5.77778], abs=1e-5)
    assert tracker.beta.tolist() == pytest.approx([7.55556, 2.22222], abs=1e-5)
    assert float(tracker.values([1])) == pytest.approx(0.72222, abs=1e-5)


def test_without_offline_samples_every_prompt_starts_at_half_and_half():
    tracker = tracker_of(2)
    assert (tracker.alpha.tolist(), tracker.beta.tolist()) == ([0.5, 0.5], [0.5, 0.5])


def test_an_update_forgets_and_adds_as_worked_out_and_as_the_moving_average_does():
    """Facts 2.4: a success after a drift of 0.03, of which the advantage was 0.27778."""
    tracker = estimated(6.0)
    before = float(tracker.values([0]))
    assert 1.0 - before == pytest.approx(0.27778, abs=1e-5)
    tracker.update(visit(0, score=1.0, drift=0.03))
    assert float(tracker.alpha) == pytest.approx(6.05556, abs=1e-5)
    assert float(tracker.beta) == pytest.approx(1.94444, abs=1e-5)
    assert float(tracker.values([0])) == pytest.approx(0.756944, abs=1e-6)
    assert float(tracker.values([0])) == pytest.approx(before + (1.0 - before) / (0.875 * 8 + 1))
    assert tracker.rho == 0.875


def test_an_update_touches_the_visited_prompts_alone_each_with_its_own_drift():
    tracker = estimated(4.0, 4.0, 4.0)
    drift = torch.tensor([0.006, 0.0]).double()
    tracker.update(Visits([2, 0], torch.tensor([1.0, 0.25]).double(), drift, [sample(-1.0), sample(-2.0)]))
    assert tracker.alpha.tolist() == pytest.approx([0.96 * 4 + 0.25, 4.0, 0.93303 * 4 + 1], abs=1e-4)
    assert tracker.beta.tolist() == pytest.approx([0.96 * 4 + 0.75, 4.0, 0.93303 * 4], abs=1e-4)
    kept = [None if last is None else last.per_token_logps.tolist() for last in tracker.last_samples([0, 1, 2])]
    assert kept == [[-2.0], None, [-1.0]]


def test_advantages_are_whitened_over_the_batch():
    """Scores 1 and 0 against values of 0.5 and 0.5: 0.5 and -0.5, that is one deviation up and one down."""
    tracker = tracker_of(2)
    advantages = tracker.advantages(torch.tensor([1.0, 0.0]), tracker.values([0, 1]), UNIT, ALONE)
    assert advantages.tolist() == pytest.approx([1.0, -1.0])


def test_the_same_surprise_everywhere_teaches_nothing():
    tracker = tracker_of(2)
    assert tracker.advantages(torch.ones(2), tracker.values([0, 1]), UNIT, ALONE).tolist() == [0.0, 0.0]


def test_a_prompt_is_preferred_by_its_uncertainty_and_never_forgotten():
    assert draw_weights(torch.tensor([0.0, 0.5, 0.8, 1.0])).tolist() == pytest.approx([0.05, 0.55, 0.45, 0.05])


def test_draws_are_different_prompts_in_proportion_to_their_weights():
    """Weights 0.05, 0.55 and 0.05: the second comes first in 55 of 65 draws."""
    values = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    draws = [drawn(values, 2, seed=str(number)) for number in range(4000)]
    assert all(len(set(draw)) == 2 for draw in draws)
    first = Counter(draw[0] for draw in draws)
    assert first[1] / 4000 == pytest.approx(0.846, abs=0.02)
    assert first[0] / 4000 == pytest.approx(0.077, abs=0.015)


def test_a_draw_follows_from_seed_step_and_tracker_alone():
    schedule = Schedule(rows=50, rows_per_batch=8, updates_per_batch=1, epochs=1, seed=0, max_steps=None)
    rows = tracker_of(50).rows_of(3, schedule)
    torch.rand(5)
    assert rows == tracker_of(50).rows_of(3, schedule)
    assert rows != tracker_of(50).rows_of(4, schedule)
    assert rows != tracker_of(50, seed=43).rows_of(3, schedule)


def test_ranks_share_one_draw_and_the_last_step_of_an_epoch_draws_what_is_left():
    plan = {"rows": 11, "rows_per_batch": 8, "updates_per_batch": 1, "epochs": 1, "seed": 0, "max_steps": None}
    tracker = tracker_of(11)
    one, two = (tracker.rows_of(1, Schedule(**plan, rank=rank, world_size=2)) for rank in (0, 1))
    assert one + two == tracker.rows_of(1, Schedule(**plan))
    assert len(one) == len(two) == 4
    assert len(tracker.rows_of(2, Schedule(**plan))) == 3


def test_a_tracker_goes_on_from_its_state():
    one = estimated(6.0, 2.0, 4.0)
    one.update(Visits([2, 0], torch.tensor([1.0, 0.0]).double(), torch.zeros(2), [sample(-1.0, -2.0), sample(-3.0)]))
    other = tracker_of(3)
    other.load_state_dict(one.state_dict())
    for tracker in (one, other):
        tracker.update(visit(1, score=1.0, drift=0.01))
    for name, value in one.state_dict().items():
        same = torch.equal(value, other.state_dict()[name]) if torch.is_tensor(value) else value == getattr(other, name)
        assert same, name
    assert [last.per_token_logps.tolist() for last in other.last_samples([0, 1, 2])] == [[-3.0], [-1.0], [-1.0, -2.0]]


def test_a_state_of_other_prompts_is_refused():
    other = PromptTracker(torch.tensor([0, 1, 5]), RECIPE, seed=42)
    with pytest.raises(ValueError, match="its prompts are others"):
        other.load_state_dict(tracker_of(3).state_dict())


def test_rows_that_ask_the_same_and_want_the_same_are_one_prompt(tmp_path):
    asked = [("1+1", "2"), ("2+2", "4"), ("1+1", "2"), ("1+1", "3")]
    rows = [{"conversations": [{"role": "user", "content": text}], "answer": answer} for text, answer in asked]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    distinct = DistinctPrompts(PromptRows(path))
    assert [(distinct[i].messages[0]["content"], distinct[i].answer) for i in range(len(distinct))] == [
        ("1+1", "2"),
        ("2+2", "4"),
        ("1+1", "3"),
    ]
    assert len(distinct.keys) == 3
