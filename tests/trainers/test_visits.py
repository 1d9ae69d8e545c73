import pytest
import torch

from tests.trainers.tiny import tiny_gpt2, tiny_moe, tiny_qwen3
from trainers.experience import Experience, completion_scores, split_experience
from trainers.ranks import ALONE
from trainers.rewards import Rewards
from trainers.rollout import TorchRolloutEngine
from trainers.value_tracker import RewardScale, Sample
from trainers.visits import Expected, measured_drift, samples_of, visits_of_all

PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10]]


def experience(model, rows_at_once: int = 2) -> list[Experience]:
    """Return completions of three prompts with their log-probabilities."""
    torch.manual_seed(1)
    rollout = TorchRolloutEngine(model, eos_token_id=2, pad_token_id=2).rollout(
        PROMPTS, num_generations=1, max_gen_len=6, temperature=0.7
    )
    batches = split_experience(rollout, Rewards(torch.tensor([1.0, 0.0, 0.5]), {}), rows_at_once)
    for batch in batches:
        scored = completion_scores(model, batch.rollout, temperature=0.7, num_generations=1)
        batch.old_per_token_logps = scored.per_token_logps.detach()
    return batches


def drift_of(samples, model, rows_at_once=2):
    return measured_drift(samples, model, temperature=0.7, pad_token_id=2, rows_at_once=rows_at_once)


@pytest.mark.parametrize("make", [tiny_qwen3, tiny_gpt2, tiny_moe])
def test_a_policy_that_has_not_moved_has_no_drift_however_its_samples_are_padded(make):
    """Pad and end token are the same here."""
    model = make().eval()
    samples = samples_of(experience(model))
    assert [len(sample.ids) - len(sample.per_token_logps) for sample in samples] == [3, 1, 4]
    for rows_at_once in (1, 2, 3):
        assert drift_of(samples, model, rows_at_once).abs().max() < 1e-4


def test_drift_is_the_mean_distance_over_a_sample_s_own_tokens():
    """Moved by +0.5 and -0.1 in a sample of two tokens: 0.3, where a signed mean would say 0.2."""
    model = tiny_qwen3().eval()
    samples = samples_of(experience(model))
    moved = torch.zeros(len(samples[0].per_token_logps))
    moved[0] = 0.5
    moved[-1] -= 0.1
    samples[0] = Sample(samples[0].ids, samples[0].per_token_logps + moved)
    expected = float(moved.abs().mean())
    assert drift_of([None, samples[1], samples[0]], model).tolist() == pytest.approx([0.0, 0.0, expected], abs=1e-4)


def test_without_samples_there_is_no_drift():
    assert drift_of([None, None], tiny_qwen3()).tolist() == [0.0, 0.0]


def test_the_tracker_learns_of_every_completion_with_its_prompt_score_and_tokens():
    model = tiny_qwen3().eval()
    batches = experience(model)
    expected = Expected([7, 3, 5], torch.zeros(3), torch.zeros(3), torch.tensor([0.0, 0.1, 0.2]))
    visits = visits_of_all(expected, batches, RewardScale(0.0, 2.0), ALONE)
    assert visits.rows == [7, 3, 5]
    assert visits.scores.tolist() == [0.5, 0.0, 0.25]
    assert visits.drift.tolist() == pytest.approx([0.0, 0.1, 0.2])
    for sample, prompt in zip(visits.samples, PROMPTS, strict=True):
        assert sample.ids[: len(prompt)].tolist() == prompt
        assert 1 <= len(sample.per_token_logps) <= 6
        assert (sample.per_token_logps < 0).all()
