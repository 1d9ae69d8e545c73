"""A frozen model that scores conversations: a sequence-classification folder, or code that offers ``get_score``."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dataset.formats import Turn
from trainers.errors import ConfigurationError
from trainers.paths import confine_path
from trainers.rewards import ScoreConversations

ROWS_AT_ONCE = 32
WAYS_OUT = ("train one and point --reward_model_path to its model/ folder, point it to one you have, "
            "or say none for rule rewards only")


def load_reward_model(path: str, device: torch.device) -> ScoreConversations:
    """Return a function from conversations to scores; nothing heavy is loaded before the folder is known to fit.

    Raises:
        ConfigurationError: there is no such folder, or it holds no model that scores conversations.
    """
    folder = confine_path(path)
    if not (folder / "config.json").is_file():
        found = "a folder without config.json" if folder.is_dir() else "nothing there"
        raise ConfigurationError(f"--reward_model_path {path}: looked in {folder} and found {found}; {WAYS_OUT}")
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if "auto_map" in described:
        return _load_remote_code(folder, device)
    if not any(name.endswith("ForSequenceClassification") for name in described.get("architectures") or []):
        raise ConfigurationError(f"--reward_model_path {path}: {folder} holds {described.get('architectures')}, no "
                                 f"sequence-classification model; {WAYS_OUT}")
    return _load_classifier(folder, device)


def _load_classifier(folder: Path, device: torch.device) -> ScoreConversations:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, truncation_side="left", padding_side="right")
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    if model.config.num_labels != 1:
        raise ConfigurationError(f"the reward model in {folder} has {model.config.num_labels} labels; a score needs 1")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    _freeze(model, device)

    @torch.no_grad()
    def score(conversations: Sequence[list[Turn]]) -> list[float]:
        texts = [conversation_text(tokenizer, turns) for turns in conversations]
        scores: list[float] = []
        for start in range(0, len(texts), ROWS_AT_ONCE):
            batch = tokenizer(texts[start:start + ROWS_AT_ONCE], add_special_tokens=not tokenizer.chat_template,
                              padding=True, truncation=True, return_tensors="pt", return_token_type_ids=False,
                              max_length=getattr(model.config, "max_position_embeddings", None)).to(device)
            scores += model(**batch).logits.float().squeeze(-1).tolist()
        return scores

    return score


def _load_remote_code(folder: Path, device: torch.device) -> ScoreConversations:
    if os.environ.get("NIGHTSHIFT_TRUST_REMOTE_CODE") != "1":
        raise ConfigurationError(f"the reward model in {folder} brings its own code; an operator can allow it with "
                                 f"NIGHTSHIFT_TRUST_REMOTE_CODE=1, or {WAYS_OUT}")
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    model = AutoModel.from_pretrained(folder, trust_remote_code=True)
    if not hasattr(model, "get_score"):
        raise ConfigurationError(f"the code of the reward model in {folder} offers no get_score(tokenizer, messages)")
    _freeze(model, device)

    @torch.no_grad()
    def score(conversations: Sequence[list[Turn]]) -> list[float]:
        return [float(model.get_score(tokenizer, turns)) for turns in conversations]

    return score


def conversation_text(tokenizer: Any, turns: list[Turn]) -> str:
    """Return the conversation as the tokenizer's chat template writes it, or plainly where it has none."""
    if tokenizer.chat_template:
        return str(tokenizer.apply_chat_template(turns, tokenize=False))
    return "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


def _freeze(model: Any, device: torch.device) -> None:
    model.to(device).eval().requires_grad_(False)
