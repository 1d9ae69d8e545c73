"""Preference pairs in batches: the chosen conversations first, then the rejected ones, and which pairs teach."""

from collections.abc import Sequence

from torch import Tensor

from dataset.conversations import IGNORED, collate
from dataset.preferences import Preference
from trainers.runtime import Run


def collate_pairs(pairs: Sequence[Preference], pad_id: int) -> dict[str, Tensor]:
    """Return ``input_ids``, ``attention_mask`` and ``labels`` of both sides in one batch, [2B, S] each."""
    return collate([pair["chosen"] for pair in pairs] + [pair["rejected"] for pair in pairs], pad_id)


def teaching_pairs(labels: Tensor) -> Tensor:
    """Return which pairs keep a token to learn on both sides, [B], from their labels, [2B, S].

    A prompt that fills ``max_seq_len`` leaves none, and two sides that are alike teach nothing.
    """
    return (labels[:, 1:] != IGNORED).any(dim=1).view(2, -1).all(dim=0)


def count_teaching_pairs(batches: Sequence[dict[str, Tensor]]) -> int:
    """Return how many pairs the micro-batches of one step learn from."""
    return sum(int(teaching_pairs(batch["labels"]).sum()) for batch in batches)


def warn_of_cut_pairs(batches: Sequence[dict[str, Tensor]], max_seq_len: int, run: Run) -> None:
    """Say once in the log that pairs end before the assistant speaks, and are left out."""
    known = run.extra.get("cut_pairs", 0)
    pairs = sum(len(batch["labels"]) // 2 for batch in batches)
    cut = run.count("cut_pairs", pairs - count_teaching_pairs(batches)) - known
    pairs = int(run.ranks.sum(pairs))
    if cut and not known:
        run.log(
            f"warning: {cut} of the {pairs} pairs of step {run.step} are cut by --max_seq_len {max_seq_len} "
            "before the assistant speaks, and are left out"
        )
