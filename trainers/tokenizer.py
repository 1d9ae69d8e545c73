"""Which tokenizer a run uses, and what it must have."""

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from dataset.conversations import render
from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError, as_configuration_error
from trainers.paths import confine_path

DEFAULT_TOKENIZER = "../dataset/tokenizer"


def load_tokenizer(config: TrainConfig, *, kept: Path | None = None) -> PreTrainedTokenizerBase:
    """Return the tokenizer of ``tokenizer_path``, else of the weights' folder, else the one that ships.

    Args:
        config: Of the run.
        kept: Folder that a resumed run kept its tokenizer in; it wins.

    Raises:
        ConfigurationError: there is none, it lacks an end-of-text token, or its chat template writes no question.
    """
    folder = kept or tokenizer_folder(config)
    with as_configuration_error(f"no tokenizer can be loaded from {folder}", "; name its folder with --tokenizer_path"):
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if tokenizer.eos_token_id is None or not tokenizer.chat_template:
        raise ConfigurationError(f"the tokenizer in {folder} needs an eos token and a chat template")
    try:
        question = render(tokenizer, [{"role": "user", "content": "?"}], generation_prompt=True)
    except ValueError as error:
        raise ConfigurationError(f"the tokenizer in {folder} cannot write a question: {error}") from None
    if not tokenizer(question, add_special_tokens=False)["input_ids"]:
        raise ConfigurationError(f"the tokenizer in {folder} writes a question as no tokens; mend its chat template")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def tokenizer_folder(config: TrainConfig) -> Path:
    """Return the folder that ``load_tokenizer`` reads."""
    if config.tokenizer_path is not None:
        return confine_path(config.tokenizer_path)
    if config.init_path is not None:
        folder = confine_path(config.init_path)
        if has_tokenizer(folder):
            return folder
    return confine_path(DEFAULT_TOKENIZER)


def has_tokenizer(folder: Path) -> bool:
    """Return whether ``folder`` brings its own tokenizer."""
    return (folder / "tokenizer_config.json").exists()
