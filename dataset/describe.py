"""What a data file holds: usable rows, their lengths in tokens, and the first of them as the model sees them."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from dataset.errors import DataError, Skipped
from dataset.formats import read_conversation, read_pair, read_prompt, read_text
from dataset.jsonl import JsonLines, Row
from dataset.scan import scan_rows
from dataset.validation import CHECKS, SAMPLES, Kind

SAMPLED = 2_000  # rows that are tokenized: of a larger file, evenly spaced ones
BUCKETS = 10


@dataclass
class Description:
    """The rows of a file, and of those that were tokenized the lengths and the first samples."""

    kind: Kind
    skipped: Skipped
    limit: int | None
    lengths: list[int] = field(default_factory=list)  # sorted
    samples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def usable(self) -> int:
        """Return how many rows can be used."""
        return self.skipped.rows - self.skipped.count

    def as_json(self) -> dict[str, Any]:
        """Return all of it as one JSON object; ``tokens`` is null when no row could be tokenized."""
        return {
            "kind": self.kind,
            "rows": self.skipped.rows,
            "usable": self.usable,
            "skipped": self.skipped.count,
            "errors": [{"row": row, "reason": reason} for row, reason in self.skipped.first],
            "sampled": len(self.lengths),
            "tokens": token_statistics(self.lengths, self.limit) if self.lengths else None,
            "samples": self.samples,
        }


def describe_file(path: str | Path, kind: Kind, tokenizer: Any, max_seq_len: int | None = None) -> Description:
    """Return what a file holds for training with ``tokenizer`` and a limit of ``max_seq_len`` tokens.

    Raises:
        DataError: the file cannot be read or has no rows.
    """
    index = scan_rows(Path(path), CHECKS[kind], strict=False)
    found = Description(kind=kind, skipped=index.skipped, limit=max_seq_len)
    if not index.offsets:
        return found
    rows = JsonLines(path, index=index)
    for place in evenly_spaced(len(rows)):
        try:
            texts = rows.parsed(place, lambda row: tokenize_row(tokenizer, kind, row))
        except DataError as error:  # the chat template refuses it
            index.skipped.add(rows.row_number(place), error.reason)
            continue
        found.lengths.append(max(len(example["input_ids"]) for example in texts.values()))
        if len(found.lengths) <= SAMPLES:
            found.samples += [
                shown(tokenizer, example, max_seq_len) | {"row": rows.row_number(place), "part": part}
                for part, example in texts.items()
            ]
    found.lengths.sort()
    return found


def evenly_spaced(rows: int) -> list[int]:
    """Return about ``SAMPLED`` places among ``rows``, and those of the samples that are shown."""
    count = min(rows, SAMPLED)
    return sorted({*range(min(rows, SAMPLES)), *(number * rows // count for number in range(count))})


def tokenize_row(tokenizer: Any, kind: Kind, row: Row) -> dict[str, Any]:
    """Return the whole examples that a row gives, by their part in it.

    Raises:
        ValueError: the chat template refuses it.
    """
    from dataset.prompts import prompt_ids
    from dataset.rendering import IGNORED, Example, tokenize_conversation, tokenize_text

    whole = sys.maxsize
    if kind == "text":
        return {"text": tokenize_text(tokenizer, read_text(row), None)}
    if kind == "conversations":
        return {"conversation": tokenize_conversation(tokenizer, read_conversation(row), whole)}
    if kind == "pairs":
        pair = read_pair(row)
        return {
            part: tokenize_conversation(tokenizer, turns, whole, last_only=True)
            for part, turns in (("chosen", pair.chosen), ("rejected", pair.rejected))
        }
    ids = prompt_ids(tokenizer, read_prompt(row).messages, whole)
    return {"prompt": Example(input_ids=ids, labels=[IGNORED] * len(ids))}


def shown(tokenizer: Any, example: Any, max_seq_len: int | None) -> dict[str, str]:
    """Return the text that the limit leaves, special tokens included, and the parts of it that are learned."""
    ids, labels = example["input_ids"][:max_seq_len], example["labels"][:max_seq_len]
    runs = [list(run) for learned, run in groupby(labels, key=lambda label: label >= 0) if learned]
    return {"text": tokenizer.decode(ids), "learned": " … ".join(tokenizer.decode(run) for run in runs)}


def token_statistics(lengths: Sequence[int], limit: int | None) -> dict[str, Any]:
    """Return range, median, 95th percentile and histogram of sorted lengths, and how many exceed ``limit``."""
    return {
        "min": lengths[0],
        "p50": percentile(lengths, 0.5),
        "p95": percentile(lengths, 0.95),
        "max": lengths[-1],
        "limit": limit,
        "longer_than_limit": sum(length > limit for length in lengths) if limit is not None else 0,
        "histogram": histogram(lengths),
    }


def percentile(lengths: Sequence[int], share: float) -> int:
    """Return the smallest of the sorted lengths that at least ``share`` of them do not exceed."""
    return lengths[math.ceil(share * len(lengths)) - 1]


def histogram(lengths: Sequence[int]) -> list[dict[str, int]]:
    """Return at most ``BUCKETS`` ranges of equal width, both ends included, with how many lengths lie in each."""
    width = max(1, math.ceil((lengths[-1] - lengths[0] + 1) / BUCKETS))
    return [
        {"from": start, "to": start + width - 1, "count": sum(start <= length < start + width for length in lengths)}
        for start in range(lengths[0], lengths[-1] + 1, width)
    ]
