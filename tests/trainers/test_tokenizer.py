import shutil

import pytest

from trainers.configs import SFTConfig
from trainers.errors import ConfigurationError
from trainers.paths import REPOSITORY
from trainers.tokenizer import load_tokenizer, tokenizer_folder

SHIPPED = REPOSITORY / "dataset" / "tokenizer"


def copied(home, without=None):
    folder = home / "runs" / "model"
    shutil.copytree(SHIPPED, folder)
    if without:
        (folder / without).unlink()
    return folder


def test_the_shipped_tokenizer_is_the_default():
    assert tokenizer_folder(SFTConfig()) == SHIPPED
    assert load_tokenizer(SFTConfig()).eos_token == "<|im_end|>"


def test_the_weights_bring_their_own_and_tokenizer_path_wins(home):
    folder = copied(home)
    assert tokenizer_folder(SFTConfig(init_path="runs/model")) == folder
    assert tokenizer_folder(SFTConfig(init_path="runs/model", tokenizer_path="../dataset/tokenizer")) == SHIPPED


def test_weights_without_a_tokenizer_use_the_shipped_one(home):
    copied(home, without="tokenizer_config.json")
    assert tokenizer_folder(SFTConfig(init_path="runs/model")) == SHIPPED


def test_a_tokenizer_without_chat_template_is_refused(home):
    copied(home, without="chat_template.jinja")
    with pytest.raises(ConfigurationError, match="needs an eos token and a chat template"):
        load_tokenizer(SFTConfig(tokenizer_path="runs/model"))


def test_a_tokenizer_without_an_end_of_text_is_refused(home):
    settings = copied(home) / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"eos_token": "<|im_end|>"', '"eos_token": null'))
    with pytest.raises(ConfigurationError, match="needs an eos token and a chat template"):
        load_tokenizer(SFTConfig(tokenizer_path="runs/model"))


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for", "cannot write a question: the tokenizer's chat template refuses it: unexpected 'end of template'"),
        ("{{ raise_exception('no') }}", "cannot write a question: the tokenizer's chat template refuses it: no"),
        ("{{ foo.bar }}", "cannot write a question: the tokenizer's chat template refuses it: 'foo' is undefined"),
        ("{# nothing #}", "writes a question as no tokens"),
    ],
)
def test_a_chat_template_that_writes_no_question_is_refused_at_the_start(home, template, reason):
    (copied(home) / "chat_template.jinja").write_text(template)
    with pytest.raises(ConfigurationError) as refused:
        load_tokenizer(SFTConfig(tokenizer_path="runs/model"))
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_damaged_tokenizer_is_one_line(home, name):
    (copied(home) / name).write_text("{")
    with pytest.raises(ConfigurationError, match=r"^no tokenizer can be loaded from .*; name its folder with --tok.*$"):
        load_tokenizer(SFTConfig(tokenizer_path="runs/model"))


def test_padding_with_eos_is_fine(home):
    folder = copied(home)
    settings = folder / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"pad_token": "<|endoftext|>"', '"pad_token": null'))
    tokenizer = load_tokenizer(SFTConfig(tokenizer_path="runs/model"))
    assert tokenizer.pad_token_id == tokenizer.eos_token_id == 2
