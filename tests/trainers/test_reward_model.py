import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForSequenceClassification

from dataset.conversations import render
from tests.trainers.grpo_runs import SIZES, TOKENIZER, run_grpo, save_start
from trainers.errors import ConfigurationError
from trainers.records import read_rows
from trainers.reward_model import load_reward_model

CPU = torch.device("cpu")
ASKED = {"role": "user", "content": "07+38="}
CONVERSATIONS = [[ASKED, {"role": "assistant", "content": text}] for text in ("045", "a much longer answer", "")]
REMOTE_CODE = """
from transformers import PretrainedConfig, PreTrainedModel
import torch

class ScorerConfig(PretrainedConfig):
    model_type = "scorer"

class Scorer(PreTrainedModel):
    config_class = ScorerConfig

    def __init__(self, config):
        super().__init__(config)
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.post_init()

    def get_score(self, tokenizer, messages):
        return float(len(messages[-1]["content"]))
"""


def save_classifier(folder: Path, **changes: object) -> None:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    torch.manual_seed(0)
    config = Qwen3Config(
        **{"vocab_size": len(tokenizer), "num_labels": 1, "pad_token_id": tokenizer.pad_token_id, **SIZES, **changes}
    )
    Qwen3ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def save_remote_code(folder: Path) -> None:
    folder.mkdir()
    (folder / "scorer.py").write_text(REMOTE_CODE)
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "scorer",
                "architectures": ["Scorer"],
                "auto_map": {"AutoConfig": "scorer.ScorerConfig", "AutoModel": "scorer.Scorer"},
            }
        )
    )
    from safetensors.torch import save_file

    save_file({"weight": torch.zeros(1)}, folder / "model.safetensors", metadata={"format": "pt"})
    AutoTokenizer.from_pretrained(TOKENIZER).save_pretrained(folder)


def test_scores_are_those_of_one_conversation_at_a_time(home):
    save_classifier(home / "judge")
    found = load_reward_model(str(home / "judge"), CPU)(CONVERSATIONS)
    model = Qwen3ForSequenceClassification.from_pretrained(home / "judge").eval()
    tokenizer = AutoTokenizer.from_pretrained(home / "judge")
    expected = []
    for turns in CONVERSATIONS:
        ids = tokenizer(render(tokenizer, turns), add_special_tokens=False, return_tensors="pt").input_ids
        expected.append(model(input_ids=ids).logits.item())
    assert found == pytest.approx(expected, abs=1e-5)
    assert len(set(found)) == 3


def test_a_conversation_is_scored_the_same_in_any_company(home):
    save_classifier(home / "judge")
    score = load_reward_model(str(home / "judge"), CPU)
    assert score(CONVERSATIONS * 20)[:3] == pytest.approx(score(CONVERSATIONS), abs=1e-5)


def test_a_missing_folder_names_where_it_looked_and_three_ways_out(home):
    with pytest.raises(ConfigurationError) as caught:
        load_reward_model("runs/nowhere", CPU)
    line = str(caught.value)
    assert "\n" not in line
    assert str(home / "runs" / "nowhere") in line
    for way_out in ("train one", "point it to one you have", "none for rule rewards only"):
        assert way_out in line


def test_a_language_model_is_no_reward_model(home):
    save_start(home)
    with pytest.raises(ConfigurationError, match="holds Qwen3ForCausalLM, which is no sequence-classification"):
        load_reward_model("runs/start/model", CPU)


def test_a_classifier_of_two_classes_gives_no_score(home):
    save_classifier(home / "judge", num_labels=2)
    with pytest.raises(ConfigurationError, match="has 2 labels; a score needs 1"):
        load_reward_model(str(home / "judge"), CPU)


@pytest.mark.parametrize("described", ["{", "[]", '{"architectures": 3}'])
def test_a_description_that_is_none_is_one_line(home, described):
    (home / "judge").mkdir()
    (home / "judge" / "config.json").write_text(described)
    with pytest.raises(ConfigurationError, match=r"^--reward_model_path .*config\.json describes no model .* only$"):
        load_reward_model(str(home / "judge"), CPU)


def test_a_score_never_comes_from_random_weights(home):
    save_classifier(home / "judge")
    weights = home / "judge" / "model.safetensors"
    kept = {name: value for name, value in load_file(weights).items() if name != "score.weight"}
    save_file(kept, weights, metadata={"format": "pt"})
    with pytest.raises(ConfigurationError, match=r"lacks score\.weight; train one"):
        load_reward_model(str(home / "judge"), CPU)


def test_a_damaged_or_incomplete_folder_is_one_line(home):
    save_classifier(home / "judge")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (home / "judge" / name).unlink()
    with pytest.raises(ConfigurationError, match="has no tokenizer, or one of another model"):
        load_reward_model(str(home / "judge"), CPU)
    (home / "judge" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(ConfigurationError, match=r"^no reward model can be loaded from .* rule rewards only$"):
        load_reward_model(str(home / "judge"), CPU)


def test_a_chat_template_that_refuses_a_conversation_is_one_line(home):
    save_classifier(home / "judge")
    (home / "judge" / "chat_template.jinja").write_text("{{ raise_exception('no') }}")
    with pytest.raises(ConfigurationError, match=r"^the reward model cannot read a conversation: .*: no$"):
        load_reward_model(str(home / "judge"), CPU)(CONVERSATIONS)


def test_code_that_a_folder_brings_runs_only_when_the_operator_allows_it(home, monkeypatch):
    save_remote_code(home / "scorer")
    with pytest.raises(ConfigurationError, match="NIGHTSHIFT_TRUST_REMOTE_CODE=1"):
        load_reward_model(str(home / "scorer"), CPU)
    monkeypatch.setenv("NIGHTSHIFT_TRUST_REMOTE_CODE", "1")
    monkeypatch.setenv("HF_MODULES_CACHE", str(home / "modules"))
    assert load_reward_model(str(home / "scorer"), CPU)(CONVERSATIONS) == [3.0, 20.0, 0.0]


def test_grpo_records_the_reward_model_s_score_within_its_bounds(home):
    save_start(home)
    save_classifier(home / "judge")
    assert run_grpo("runs/1", reward_model_path=home / "judge", max_steps=1) == 0
    samples = read_rows(home / "runs" / "1" / "samples.jsonl")
    scores = [completion["rewards"]["reward_model"] for sample in samples for completion in sample["completions"]]
    assert len(set(scores)) > 1
    assert all(-3.0 <= score <= 3.0 for score in scores)
