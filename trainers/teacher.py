"""The frozen model that a student learns from."""

import hashlib

import torch
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from trainers.configs import DistillationConfig
from trainers.errors import ConfigurationError
from trainers.models import check_positions, load_folder, load_weights, published_weights, vocabulary_of
from trainers.paths import confine_path
from trainers.runtime import Run
from trainers.tokenizer import has_tokenizer


def load_teacher(
    config: DistillationConfig, student: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, device: torch.device
) -> PreTrainedModel:
    """Return the teacher, frozen and in eval mode. A resumed run reads it again: checkpoints hold the student alone.

    Raises:
        ConfigurationError: its weights are missing or damaged, or it speaks of other tokens than the student.
    """
    try:
        teacher = _read(config)
    except ConfigurationError as error:
        raise ConfigurationError(f"the teacher, which every attempt reads anew: {error}") from None
    check_same_tokens(config, teacher, student, tokenizer)
    check_positions(teacher, {"max_seq_len": config.max_seq_len})
    teacher.to(device).eval()  # type: ignore[arg-type]  # transformers wraps torch's method
    return teacher.requires_grad_(False)


def check_same_tokens(
    config: DistillationConfig, teacher: PreTrainedModel, student: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Raise ConfigurationError unless a token number means the same to teacher and student."""
    taught, known = vocabulary_of(teacher), vocabulary_of(student)
    if taught != known:
        raise ConfigurationError(
            f"the teacher has a vocabulary of {taught} tokens and the student one of {known}; "
            "distillation needs the same one"
        )
    folder = confine_path(config.teacher_path) if config.teacher_path else None
    if folder is None or not has_tokenizer(folder):
        return
    spoken = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if spoken.get_vocab() != tokenizer.get_vocab():
        raise ConfigurationError(
            f"the teacher's tokenizer in {folder} numbers its {len(spoken)} tokens otherwise than the student's "
            f"numbers its {len(tokenizer)}; distillation needs the same tokenizer"
        )


def require_same_teacher(teacher: PreTrainedModel, run: Run) -> None:
    """Raise ConfigurationError when a run goes on with another teacher than its checkpoint was made with."""
    found = fingerprint(teacher)
    if run.extra.setdefault("teacher_sha256", found) != found:
        raise ConfigurationError(
            "the teacher's weights have changed since the checkpoint; bring the old ones back, or start a new job"
        )


def fingerprint(model: PreTrainedModel) -> str:
    """Return the SHA-256 of the weights, the same wherever and in whatever format they lie."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy())
    return digest.hexdigest()


def _read(config: DistillationConfig) -> PreTrainedModel:
    if config.teacher_path is not None:
        return load_folder(confine_path(config.teacher_path))
    size = config.teacher_size()
    otherwise = "name the teacher's folder with --teacher_path"
    return load_weights(published_weights(config, config.from_teacher_weight, size, otherwise=otherwise), size)
