import math
from types import SimpleNamespace

import pytest
import torch

from tests.trainers.tiny import tiny_gpt2, tiny_moe, tiny_qwen3
from trainers.logps import completion_logps, entropy_of, grouped_logps, position_ids_of, selective_log_softmax

MODELS = pytest.mark.parametrize("build", [tiny_qwen3, tiny_moe, tiny_gpt2])


class FixedLogits(torch.nn.Module):
    """Returns the same logits at every position, for every token, whatever it is asked to keep."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)
        self.config = SimpleNamespace()

    def forward(self, input_ids, **_):
        return SimpleNamespace(logits=self.logits.expand(*input_ids.shape, -1))


def ones(ids: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(ids)


def test_the_log_probability_of_the_first_of_two_logits_is_log_sigmoid_of_their_difference():
    logps = selective_log_softmax(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    assert logps.item() == pytest.approx(-0.126928, abs=1e-6)


def test_half_precision_logits_are_scored_in_float32():
    logits = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.bfloat16)
    logps = selective_log_softmax(logits, torch.tensor([2]))
    assert logps.dtype == torch.float32
    assert logps.item() == pytest.approx(3 - math.log(math.exp(1) + math.exp(2) + math.exp(3)), abs=1e-6)


def test_under_bf16_autocast_the_same_weights_score_the_same_with_and_without_a_gradient():
    """Report 2: the ratio before the first update is 1, and only the model's own arithmetic is rounded to bf16."""
    model, ids = tiny_qwen3().eval(), torch.tensor([[3, 5, 7, 4, 6, 2]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        new = completion_logps(model, ids, ones(ids), 3, temperature=1.0).per_token_logps
        with torch.no_grad():
            old = completion_logps(model, ids, ones(ids), 3, temperature=1.0).per_token_logps
            logits = model(ids).logits[:, -4:-1]
    assert (new - old).abs().max() == 0.0
    assert logits.dtype == torch.bfloat16
    expected = logits.float().log_softmax(-1).gather(-1, ids[:, -3:, None]).squeeze(-1)
    torch.testing.assert_close(new, expected, atol=1e-6, rtol=0)


def test_the_temperature_divides_the_logits_before_the_softmax():
    ids = torch.tensor([[1, 0]])
    scored = completion_logps(FixedLogits([2.0, 0.0]), ids, ones(ids), 1, temperature=0.5)
    assert scored.per_token_logps.item() == pytest.approx(-0.018150, abs=1e-6)  # log sigmoid(4)


def test_a_model_that_returns_every_logit_is_cut_to_the_completion():
    ids = torch.tensor([[1, 1, 1, 0, 1]])
    scored = completion_logps(FixedLogits([2.0, 0.0]), ids, ones(ids), 2, temperature=1.0)
    assert scored.per_token_logps.shape == (1, 2)
    assert scored.per_token_logps.tolist()[0] == pytest.approx([-0.126928, -2.126928], abs=1e-6)


def test_padding_on_the_left_does_not_count_as_a_position():
    assert position_ids_of(torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])).tolist() == [
        [0, 0, 0, 1, 2],
        [0, 1, 2, 3, 3],
    ]


@MODELS
def test_left_padding_changes_no_log_probability(build):
    model = build().eval()
    prompt, completion = [3, 5, 7, 9], [4, 6, 8]
    plain = torch.tensor([prompt + completion])
    padded = torch.tensor([[0] * 6 + prompt + completion])
    mask = torch.tensor([[0] * 6 + [1] * 7])
    expected = completion_logps(model, plain, ones(plain), 3, temperature=1.0).per_token_logps
    found = completion_logps(model, padded, mask, 3, temperature=1.0).per_token_logps
    assert (found - expected).abs().max() < 1e-5


@MODELS
def test_the_log_probabilities_are_those_of_the_whole_softmax(build):
    model = build().eval()
    ids = torch.tensor([[3, 5, 7, 4, 6]])
    expected = [model(input_ids=ids).logits[0, at].log_softmax(-1)[ids[0, at + 1]].item() for at in (2, 3)]
    found = completion_logps(model, ids, ones(ids), 2, temperature=1.0).per_token_logps[0].tolist()
    assert found == pytest.approx(expected, abs=1e-5)


def test_what_follows_the_end_of_a_completion_is_zero_and_has_no_gradient():
    model = tiny_qwen3()
    ids = torch.tensor([[3, 5, 4, 2, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 0]])
    logits = []
    model.lm_head.register_forward_hook(lambda _, __, output: (output.retain_grad(), logits.append(output))[0])
    scored = completion_logps(model, ids, mask, 3, temperature=1.0)
    scored.per_token_logps.sum().backward()
    gradient = logits[0].grad[0].abs().sum(-1)  # [T + 1]; position t predicts token t + 1
    assert scored.per_token_logps[0, 2].item() == 0.0
    assert gradient[0] > 0
    assert gradient[1] > 0, "the end token itself is trained"
    assert gradient[2:].tolist() == [0.0, 0.0]


def test_a_uniform_distribution_has_the_entropy_of_its_size():
    assert entropy_of(torch.zeros(2, 1, 8)).tolist() == [[pytest.approx(math.log(8))], [pytest.approx(math.log(8))]]


def test_a_mixture_of_experts_reports_its_weighted_load_balance_and_a_dense_model_zero():
    ids = torch.tensor([[3, 5, 4, 2]])
    model = tiny_moe()
    scored = completion_logps(model, ids, ones(ids), 2, temperature=1.0)
    assert scored.aux_loss.item() == pytest.approx(0.01 * model(input_ids=ids).aux_loss.item())
    assert completion_logps(tiny_qwen3(), ids, ones(ids), 2, temperature=1.0).aux_loss == 0.0


@MODELS
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_reading_each_prompt_once_gives_the_same_log_probabilities_and_the_same_gradient(build, temperature):
    ids = torch.tensor([[0, 3, 5, 4, 6, 2], [0, 3, 5, 8, 2, 0], [7, 8, 9, 2, 0, 0], [7, 8, 9, 1, 1, 1]])
    mask = torch.tensor([[0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    weight = torch.tensor([[1.0], [-2.0], [0.5], [3.0]])
    results = []
    for grouped in (False, True):
        model = build().eval()
        scored = (
            grouped_logps(model, ids, mask, 3, temperature, num_generations=2)
            if grouped
            else completion_logps(model, ids, mask, 3, temperature)
        )
        (scored.per_token_logps * weight).sum().backward()
        results.append((scored, {name: parameter.grad for name, parameter in model.named_parameters()}))
    (expected, expected_gradients), (found, gradients) = results
    torch.testing.assert_close(found.per_token_logps, expected.per_token_logps, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.entropy, expected.entropy, atol=1e-5, rtol=1e-5)
    largest = max(gradient.abs().max() for gradient in expected_gradients.values())
    for name, gradient in expected_gradients.items():
        assert (gradients[name] - gradient).abs().max() <= 1e-5 * largest, name


def test_completions_of_one_token_need_no_second_pass():
    model = tiny_qwen3().eval()
    ids = torch.tensor([[3, 5, 4], [3, 5, 2]])
    expected = completion_logps(model, ids, ones(ids), 1, temperature=1.0)
    found = grouped_logps(model, ids, ones(ids), 1, temperature=1.0, num_generations=2)
    torch.testing.assert_close(found.per_token_logps, expected.per_token_logps, atol=1e-5, rtol=1e-5)
