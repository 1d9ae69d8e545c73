"""Which tokenizer a run uses, and what it must have."""

from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError
from trainers.paths import confine_path

DEFAULT_TOKENIZER = "../dataset/tokenizer"


def load_tokenizer(config: TrainConfig) -> PreTrainedTokenizerBase:
    """Return the tokenizer of ``tokenizer_path``, else of the weights' folder, else the one that ships.

    Raises:
        ConfigurationError: there is none, or it lacks a chat template or an end-of-text token.
    """
    folder = tokenizer_folder(config)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"no tokenizer can be loaded from {folder} ({_first_line(error)}); name its folder "
                                 "with --tokenizer_path") from None
    if tokenizer.eos_token_id is None or not tokenizer.chat_template:
        raise ConfigurationError(f"the tokenizer in {folder} needs an eos token and a chat template")
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


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
