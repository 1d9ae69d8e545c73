"""A frozen model that scores conversations: a sequence-classification folder, or code that offers ``get_score``."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dataset.conversations import tokenize_conversation
from dataset.formats import Turn
from trainers.batches import micro_batches
from trainers.errors import ConfigurationError, as_configuration_error
from trainers.models import quiet_transformers, vocabulary_of
from trainers.reward_folder import WAYS_OUT, find_reward_model
from trainers.rewards import ScoreConversations
from trainers.scorer import score_conversations

ROWS_AT_ONCE = 32


def load_reward_model(path: str, device: torch.device) -> ScoreConversations:
    """Return a function from conversations to scores.

    Raises:
        ConfigurationError: there is no such folder, or it holds no model that scores conversations.
    """
    folder = find_reward_model(path)
    quiet_transformers()
    with as_configuration_error(f"no reward model can be loaded from {folder.path}", f"; {WAYS_OUT}"):
        return (_load_remote_code if folder.remote_code else _load_classifier)(folder.path, device)


def _load_classifier(folder: Path, device: torch.device) -> ScoreConversations:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, truncation_side="left", padding_side="right")
    model, report = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    if missing := sorted(report["missing_keys"]):
        raise ConfigurationError(f"the reward model in {folder} lacks {', '.join(missing[:3])}; {WAYS_OUT}")
    if len(tokenizer) > vocabulary_of(model) or not tokenizer("?")["input_ids"]:
        raise ConfigurationError(f"the reward model in {folder} has no tokenizer, or one of another model; {WAYS_OUT}")
    if model.config.num_labels != 1:
        raise ConfigurationError(f"the reward model in {folder} has {model.config.num_labels} labels; a score needs 1")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    by_lengths = model.config.pad_token_id is None and hasattr(model, "score")  # it learned to score the last token
    model.config.pad_token_id = tokenizer.pad_token_id
    longest = getattr(model.config, "max_position_embeddings", None)
    _freeze(model, device)

    @torch.no_grad()
    def score(conversations: Sequence[list[Turn]]) -> list[float]:
        rows = [conversation_ids(tokenizer, turns, max_length=longest) for turns in conversations]
        scores: list[float] = []
        for part in micro_batches(rows, ROWS_AT_ONCE):
            batch = tokenizer.pad({"input_ids": list(part)}, return_tensors="pt", verbose=False).to(device)
            found = score_conversations(model, **batch)[0] if by_lengths else model(**batch).logits.float().squeeze(-1)
            scores += found.tolist()
        return scores

    return score


def _load_remote_code(folder: Path, device: torch.device) -> ScoreConversations:
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


def conversation_ids(tokenizer: Any, turns: list[Turn], *, max_length: int | None) -> list[int]:
    """Return the last ``max_length`` tokens of the conversation, in the words of the chat template if there is one.

    What the assistant says last is tokenized apart from the rest, as when it was sampled and as ``trainers.reward``
    learns it.

    Raises:
        ConfigurationError: the template refuses the conversation.
    """
    if not tokenizer.chat_template:
        text = "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
        plain: list[int] = tokenizer(text, truncation=max_length is not None, max_length=max_length)["input_ids"]
        return plain
    try:
        ids = tokenize_conversation(tokenizer, turns, sys.maxsize, last_only=True)["input_ids"]
    except ValueError as error:
        raise ConfigurationError(f"the reward model cannot read a conversation: {error}") from None
    return ids if max_length is None else ids[-max_length:]


def _freeze(model: Any, device: torch.device) -> None:
    model.to(device).eval().requires_grad_(False)
