import pytest
import torch
from transformers import AutoModelForCausalLM, MambaConfig, MambaForCausalLM

from tests.trainers.grpo_runs import save_start
from tests.trainers.pair_runs import FLAGS, share_pad_with_eos
from tests.trainers.tiny import tiny_gpt2, tiny_moe, tiny_qwen3
from trainers.configs import RewardConfig
from trainers.errors import ConfigurationError
from trainers.scorer import load_scorer, score_conversations
from trainers.tokenizer import load_tokenizer


def scorer_of(home):
    torch.manual_seed(0)
    config = RewardConfig(**FLAGS)
    return load_scorer(config, load_tokenizer(config))


@pytest.mark.parametrize("kind", ["qwen3", "gpt2", "moe"])
def test_every_weight_but_the_head_is_the_language_model_s(home, kind):
    save_start(home, kind)
    scorer = scorer_of(home)
    expected = AutoModelForCausalLM.from_pretrained(home / "runs" / "start" / "model").base_model.state_dict()
    found = scorer.base_model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    rest = scorer.state_dict().keys() - {f"{scorer.base_model_prefix}.{name}" for name in expected}
    assert rest == {"score.weight"}
    assert scorer.score.weight.shape == (1, 32)
    assert 0.005 < scorer.score.weight.std() < 0.05


def test_the_head_comes_from_the_seed(home):
    save_start(home)
    assert torch.equal(scorer_of(home).score.weight, scorer_of(home).score.weight)


def test_an_architecture_without_a_class_that_scores_is_one_line(home):
    save_start(home)
    tokenizer = load_tokenizer(RewardConfig(**FLAGS))
    folder = home / "runs" / "start" / "model"
    described = MambaConfig(vocab_size=len(tokenizer), hidden_size=8, state_size=4, num_hidden_layers=1)
    MambaForCausalLM(described).save_pretrained(folder)
    with pytest.raises(ConfigurationError, match=r"^transformers has no class that scores for mamba models "):
        scorer_of(home)


def test_a_reward_model_is_taken_as_it_is(home):
    save_start(home)
    folder = home / "runs" / "start" / "model"
    first = scorer_of(home)
    first.score.weight.data.fill_(0.5)
    first.save_pretrained(folder)
    found = scorer_of(home).state_dict()
    assert found.keys() == first.state_dict().keys()
    assert all(torch.equal(found[name], value) for name, value in first.state_dict().items())


def test_a_classifier_of_two_labels_gives_no_score(home):
    save_start(home)
    first = scorer_of(home)
    first.config.num_labels = 2
    type(first)(first.config).save_pretrained(home / "runs" / "start" / "model")
    with pytest.raises(ConfigurationError, match=r"^Qwen3ForSequenceClassification with 2 labels gives no score "):
        scorer_of(home)


@pytest.mark.parametrize("kind", [tiny_qwen3, tiny_gpt2, tiny_moe])
def test_a_score_is_the_head_s_reading_of_the_last_token_in_any_company(kind):
    policy = kind().eval()
    policy.score = torch.nn.Linear(32, 1, bias=False)
    long, short = [5, 6, 7, 8, 9], [10, 11, 2]
    ids, mask = torch.tensor([long, [*short, 2, 2]]), torch.tensor([[1] * 5, [1, 1, 1, 0, 0]])  # padded with its end
    scores, _ = score_conversations(policy, ids, mask)
    for row, alone in zip(scores, (long, short), strict=True):
        state = policy.base_model(input_ids=torch.tensor([alone])).last_hidden_state[0, -1]
        assert row.item() == pytest.approx(policy.score(state).item(), abs=1e-5)


def test_the_balance_is_that_of_the_language_model():
    policy = tiny_moe().eval()
    policy.score = torch.nn.Linear(32, 1, bias=False)
    ids, mask = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    _, balance = score_conversations(policy, ids, mask)
    expected = policy(input_ids=ids, attention_mask=mask, output_router_logits=True).aux_loss
    assert balance.item() == pytest.approx(0.01 * expected.item(), rel=1e-6)


def test_a_dense_model_has_no_balance():
    policy = tiny_qwen3().eval()
    policy.score = torch.nn.Linear(32, 1, bias=False)
    assert score_conversations(policy, torch.tensor([[5, 6]]), torch.ones(1, 2, dtype=torch.long))[1] == 0.0


@pytest.mark.parametrize(("shared", "known"), [(False, True), (True, False)])
def test_transformers_is_told_the_padding_only_where_it_is_not_the_end_token(home, shared, known):
    """With the end token as padding it would score the token before the end."""
    save_start(home)
    if shared:
        share_pad_with_eos(home / "runs" / "start" / "model")
    assert (scorer_of(home).config.pad_token_id is not None) is known


def test_a_score_is_read_in_float32_where_the_backbone_computes_in_bf16():
    policy = tiny_qwen3().eval()
    policy.score = torch.nn.Linear(32, 1, bias=False)
    with torch.autocast("cpu", torch.bfloat16):
        scores, _ = score_conversations(policy, torch.tensor([[5, 6, 7], [8, 9, 10]]), torch.ones(2, 3, dtype=int))
    assert scores.dtype == torch.float32
    assert not torch.equal(scores, scores.bfloat16().float())
