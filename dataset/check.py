"""Check a data file and show what training would see of it.

python -m dataset.check ../dataset/sft-mini.jsonl --kind conversations --max_seq_len 340

Paths are relative to ``trainers/``, as those of the trainers are, else to the current folder. They are opened as they
stand: whoever runs this for someone else confines them first. Exits 0 when the file can be used, and 2 when no row can,
or with ``--strict`` not every row. What is wrong goes to stderr, the report to stdout.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from dataset.describe import Description, describe_file
from dataset.errors import DataError
from dataset.validation import KINDS

FOLDER = Path(__file__).parent
TRAINERS = FOLDER.parent / "trainers"
BAR = 40


def main(argv: list[str] | None = None) -> int:
    """Check the file that the command line names, and return the exit code."""
    args = parse_args(argv)
    try:
        found = describe_file(resolved(args.path), args.kind, load_tokenizer(args.tokenizer_path), args.max_seq_len)
    except DataError as error:
        return refuse(str(error), args)
    for row, reason in found.skipped.first:
        print(f"row {row}: {reason}", file=sys.stderr)
    print(json.dumps(found.as_json(), ensure_ascii=False) if args.json else "\n".join(report(found, args.path)))
    return 0 if found.usable and not (args.strict and found.skipped.count) else 2


def parse_args(argv: list[str] | None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m dataset.check", description="Check a data file.")
    parser.add_argument("path", help="the JSONL file, relative to trainers/ or to the current folder")
    parser.add_argument("--kind", choices=KINDS, required=True, help="what its rows are")
    parser.add_argument("--tokenizer_path", default=str(FOLDER / "tokenizer"), help="default: the one that ships")
    parser.add_argument("--max_seq_len", type=int, help="tokens that a row may have")
    parser.add_argument("--strict", action="store_true", help="exit 2 when any row cannot be used")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    if args.max_seq_len is not None and args.max_seq_len < 1:
        parser.error("--max_seq_len must be at least 1")
    return args


def resolved(value: str) -> Path:
    """Return the path below ``trainers/`` if there is something, else as the current folder has it."""
    return next((path for path in (TRAINERS / value, Path(value)) if path.exists()), TRAINERS / value)


def load_tokenizer(value: str) -> Any:
    """Return the tokenizer of a folder, without torch where the folder needs no class of its own.

    Raises:
        DataError: there is none, or it has no chat template.
    """
    folder = resolved(value)
    try:
        declared = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("tokenizer_class")
        import transformers

        own = declared != "PreTrainedTokenizerFast"
        loader: Any = transformers.AutoTokenizer if own else transformers.PreTrainedTokenizerFast
        return loader.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, AttributeError, ImportError) as error:
        raise DataError(folder, None, f"no tokenizer can be loaded from {folder}: {error}") from None


def refuse(reason: str, args: argparse.Namespace) -> int:
    """Say why there is no report, and return the exit code."""
    print(f"error: {reason}", file=sys.stderr)
    if args.json:
        nothing: dict[str, Any] = {"rows": 0, "usable": 0, "skipped": 0, "sampled": 0, "tokens": None, "samples": []}
        print(
            json.dumps({"kind": args.kind, **nothing, "errors": [{"row": None, "reason": reason}]}, ensure_ascii=False)
        )
    return 2


def report(found: Description, path: str) -> list[str]:
    """Return the lines that a person reads."""
    described = found.as_json()
    lines = [f"{path}: {described['rows']:,} rows of {found.kind}, {found.usable:,} usable"]
    if tokens := described["tokens"]:
        which = (
            "all usable rows" if len(found.lengths) >= found.usable else f"{len(found.lengths):,} evenly spaced rows"
        )
        lines += ["", "tokens per row ({}): min {min}, median {p50}, 95% {p95}, max {max}".format(which, **tokens)]
        lines += histogram_lines(tokens["histogram"])
        if found.limit is not None:
            lines.append(f"longer than {found.limit} tokens: {tokens['longer_than_limit']:,}")
    for sample in described["samples"]:
        lines += ["", f"row {sample['row']}, {sample['part']}:", sample["text"].rstrip("\n")]
        lines += [f"learned: {sample['learned']!r}"] if sample["learned"] else []
    return lines


def histogram_lines(buckets: list[dict[str, int]]) -> list[str]:
    """Return one bar per bucket, the fullest ``BAR`` characters long."""
    fullest = max(bucket["count"] for bucket in buckets)
    width = len(str(buckets[-1]["to"]))
    return [
        f"  {bucket['from']:>{width}} - {bucket['to']:>{width}}  {bucket['count']:>7,}  "
        + "#" * -(-BAR * bucket["count"] // fullest)
        for bucket in buckets
    ]


if __name__ == "__main__":
    sys.exit(main())
