import pytest
import torch

from tests.trainers.tiny import VOCAB, tiny_gpt2, tiny_moe, tiny_qwen3
from trainers.logps import completion_logps
from trainers.rollout import TorchRolloutEngine, pad_left, sample_tokens

EOS, PAD = 2, 0
PROMPTS = [[3, 5, 7], [4], [9, 8, 7, 6, 5]]
MODELS = pytest.mark.parametrize("build", [tiny_qwen3, tiny_moe, tiny_gpt2])


class Script(torch.nn.Module):
    """Writes what each row of its script says, by the number of tokens so far; rows are told apart by their prompt."""

    def __init__(self, script: dict[int, list[int]]) -> None:
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.config = tiny_qwen3().config
        self.script = script
        self.rows_seen: list[int] = []
        self.prompts: torch.Tensor | None = None

    def forward(self, input_ids, attention_mask, position_ids, cache, **_):
        self.rows_seen.append(len(input_ids))
        first = cache.get_seq_length() == 0
        marks = input_ids[:, -1:].float() if first else None
        keys = marks[:, None, :, None] if first else torch.zeros(len(input_ids), 1, 1, 1)
        stored, _ = cache.update(keys, keys, 0)
        logits = torch.full((len(input_ids), 1, VOCAB), -1e9)
        for row, key in enumerate(stored[:, 0, 0, 0].int().tolist()):
            logits[row, 0, self.script[key][stored.shape[2] - 1]] = 0.0
        return type("Output", (), {"logits": logits})


def engine(model, *, eos: int = EOS, pad: int = PAD) -> TorchRolloutEngine:
    return TorchRolloutEngine(model, eos_token_id=eos, pad_token_id=pad)


def scripted(script: dict[int, list[int]], *, pad: int = PAD, max_gen_len: int = 5):
    return engine(Script(script), pad=pad).rollout(
        [[mark] for mark in script], num_generations=1, max_gen_len=max_gen_len, temperature=1.0
    )


def test_the_mask_ends_with_the_first_end_token_even_when_padding_is_the_same_token():
    rollout = scripted({11: [5, 6, EOS, 9, 9], 12: [5, 6, 7, 8, 9]}, pad=EOS)
    assert rollout.completion_mask.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert rollout.completion_ids.tolist() == [[5, 6, EOS, EOS, EOS], [5, 6, 7, 8, 9]]
    assert rollout.lengths.tolist() == [3, 5]
    assert rollout.truncated.tolist() == [False, True]


def test_a_pad_token_that_the_model_writes_is_part_of_the_completion():
    rollout = scripted({11: [5, PAD, 6, EOS, 9]})
    assert rollout.completion_ids.tolist() == [[5, PAD, 6, EOS]]
    assert rollout.attention_mask.tolist() == [[1, 1, 1, 1, 1]]


def test_a_completion_cut_at_the_limit_keeps_its_last_token_and_counts_as_truncated():
    rollout = scripted({11: [5, 6, 7, 8, 9]}, max_gen_len=3)
    assert rollout.completion_ids.tolist() == [[5, 6, 7]]
    assert rollout.completion_mask.tolist() == [[1, 1, 1]]
    assert rollout.truncated.tolist() == [True]


def test_the_end_token_as_the_last_allowed_one_is_not_a_truncation():
    assert scripted({11: [5, 6, EOS, 9, 9]}, max_gen_len=3).truncated.tolist() == [False]


def test_finished_rows_leave_the_batch_once_fewer_than_three_in_four_are_live():
    script = {11: [EOS] * 5, 12: [5, EOS, 9, 9, 9], 13: [5, 6, 7, 8, EOS], 14: [5, 6, 7, 8, EOS]}
    model = Script(script)
    rollout = engine(model).rollout([[mark] for mark in script], num_generations=1, max_gen_len=5, temperature=1.0)
    assert rollout.lengths.tolist() == [1, 2, 5, 5]
    assert rollout.completion_ids.tolist() == [
        [EOS, PAD, PAD, PAD, PAD],
        [5, EOS, PAD, PAD, PAD],
        [5, 6, 7, 8, EOS],
        [5, 6, 7, 8, EOS],
    ]
    assert model.rows_seen == [4, 4, 2, 2, 2], "3 of 4 live stay together, 2 of 4 do not"


def test_completions_of_one_prompt_are_neighbours():
    rollout = engine(tiny_qwen3()).rollout(PROMPTS[:2], num_generations=3, max_gen_len=2, temperature=1.0)
    assert rollout.sequence_ids[:, :3].tolist() == [[3, 5, 7]] * 3 + [[PAD, PAD, 4]] * 3
    assert rollout.attention_mask[:, :3].tolist() == [[1, 1, 1]] * 3 + [[0, 0, 1]] * 3


@MODELS
def test_greedy_tokens_are_those_of_one_prompt_at_a_time_without_a_cache(build):
    model = build().eval()
    rollout = engine(model).rollout(PROMPTS, num_generations=2, max_gen_len=12, temperature=0)
    for row, prompt in enumerate(PROMPTS):
        expected = list(prompt)
        while len(expected) < len(prompt) + 12 and expected[-1] != EOS:
            with torch.no_grad():
                expected.append(model(input_ids=torch.tensor([expected])).logits[0, -1].argmax().item())
        for copy in (2 * row, 2 * row + 1):
            assert rollout.completion_ids[copy, : rollout.lengths[copy]].tolist() == expected[len(prompt) :]


def test_greedy_tokens_are_those_of_transformers_generate():
    model = tiny_qwen3(seed=3).eval()
    ids, mask = pad_left(PROMPTS, PAD, torch.device("cpu"))
    expected = model.generate(
        input_ids=ids, attention_mask=mask, max_new_tokens=12, do_sample=False, eos_token_id=EOS, pad_token_id=PAD
    )
    rollout = engine(model).rollout(PROMPTS, num_generations=2, max_gen_len=12, temperature=0)
    assert rollout.sequence_ids[::2].tolist() == expected.tolist()


@MODELS
@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_sampling_and_scoring_agree_on_every_log_probability(build, temperature):
    model = build()
    rollout = engine(model).rollout(PROMPTS, num_generations=16, max_gen_len=24, temperature=temperature)
    assert len(set(rollout.lengths.tolist())) > 2, "rows must end at different steps for this to check anything"
    scored = completion_logps(
        model, rollout.sequence_ids, rollout.attention_mask, rollout.completion_ids.shape[1], temperature
    )
    assert (scored.per_token_logps - rollout.sampling_logps).abs().max() <= 1e-4


def test_sampling_follows_the_tempered_distribution():
    torch.manual_seed(0)
    tokens, logps = sample_tokens(torch.tensor([[2.0, 0.0]]).expand(20_000, 2), temperature=0.5)
    assert (tokens == 0).float().mean().item() == pytest.approx(0.98201, abs=0.004)  # sigmoid(4)
    assert logps[tokens == 0][0].item() == pytest.approx(-0.018150, abs=1e-6)


def test_the_policy_is_back_in_training_mode_after_a_rollout():
    model = tiny_qwen3().train()
    engine(model).rollout(PROMPTS, num_generations=2, max_gen_len=2, temperature=1.0)
    assert model.training


def test_a_rollout_after_update_policy_comes_from_the_new_policy():
    sampler = engine(tiny_qwen3(seed=0))
    before = sampler.rollout(PROMPTS, num_generations=2, max_gen_len=8, temperature=0).completion_ids
    sampler.update_policy(tiny_qwen3(seed=1))
    after = sampler.rollout(PROMPTS, num_generations=2, max_gen_len=8, temperature=0).completion_ids
    assert before.tolist() != after.tolist()
