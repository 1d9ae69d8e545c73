"""Build the data sets and the tokenizer that ship: ``python -m dataset.build``. The same bytes every time.

The task is the sum of two numbers below 100, written with both digits and asked in English and in Chinese. A fifth of
the unordered pairs is held out: of those, neither ``a+b`` nor ``b+a`` is ever trained on, in any wording.
"""

import argparse
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dataset.texts_build import sentence, stated_sum
from dataset.tokenizer_build import write_tokenizer

SEED = 42
NUMBERS = 100
HELD_OUT = 1_000
EASY_COPIES = 3
PREFERENCES = 4_000
HELD_OUT_PREFERENCES = 500
STATED_SUMS = 3_000
SENTENCES = 1_000
WORDINGS = (
    "{a}+{b}=",
    "What is {a}+{b}?",
    "Please add {a} and {b}.",
    "{a}+{b}等于多少？",
    "请计算{a}加{b}。",
    "求{a}与{b}的和。",
)

Pair = tuple[int, int]


def build(folder: Path) -> None:
    """Write the tokenizer and the data files into ``folder``."""
    rng = random.Random(SEED)
    training, held_out = split_pairs(rng)
    write_tokenizer(folder / "tokenizer", wordings=WORDINGS)
    write_rows(folder / "sft-mini.jsonl", [sft_row(pair, rng) for pair in easy_often(training, rng)])
    rng.shuffle(training)
    write_rows(folder / "rlaif-mini.jsonl", [prompt_row(pair, rng) for pair in training])
    write_rows(folder / "eval-mini.jsonl", [prompt_row(pair, rng) for pair in held_out])
    rng = random.Random(SEED + 1)  # its own: a file that is added changes none of those above
    chosen = rng.sample(training, PREFERENCES)
    write_rows(folder / "dpo-mini.jsonl", [preference_row(pair, rng) for pair in chosen])
    chosen = rng.sample(held_out, HELD_OUT_PREFERENCES)
    write_rows(folder / "eval-pairs-mini.jsonl", [preference_row(pair, rng) for pair in chosen])
    write_rows(folder / "pretrain-mini.jsonl", text_rows(training, rng))


def split_pairs(rng: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Return the training pairs in both orders, shuffled, and the held-out pairs in one order each."""
    unordered = [(a, b) for a in range(NUMBERS) for b in range(a, NUMBERS)]
    rng.shuffle(unordered)
    held_out = [pair if rng.random() < 0.5 else pair[::-1] for pair in unordered[:HELD_OUT]]
    training = sorted({order for pair in unordered[HELD_OUT:] for order in (pair, pair[::-1])})
    rng.shuffle(training)
    return training, held_out


def easy_often(pairs: list[Pair], rng: random.Random) -> list[Pair]:
    """Return all pairs, those whose units do not carry several times, shuffled.

    Were every pair as frequent as the next, one digit alone would say nothing of the sum's last digit, and a model from
    nothing would stay at chance there for a number of steps that depends on its seed.
    """
    repeated = [pair for pair in pairs for _ in range(EASY_COPIES if pair[0] % 10 + pair[1] % 10 < 10 else 1)]
    rng.shuffle(repeated)
    return repeated


def sft_row(pair: Pair, rng: random.Random) -> dict[str, Any]:
    """Return a conversation whose assistant turn is the answer."""
    return {"conversations": [_question(pair, rng), {"role": "assistant", "content": answer_of(pair)}]}


def prompt_row(pair: Pair, rng: random.Random) -> dict[str, Any]:
    """Return a question with an empty assistant turn, as the scripts' RLAIF files have it, and its answer."""
    return {"conversations": [_question(pair, rng), {"role": "assistant", "content": ""}], "answer": answer_of(pair)}


def preference_row(pair: Pair, rng: random.Random) -> dict[str, Any]:
    """Return the right answer as chosen, and as rejected one that misses a single digit by one."""
    question = _question(pair, rng)
    return {
        name: [question, {"role": "assistant", "content": answer}]
        for name, answer in (("chosen", answer_of(pair)), ("rejected", near_miss(answer_of(pair), rng)))
    }


def near_miss(answer: str, rng: random.Random) -> str:
    """Return ``answer`` with one digit changed by one, the first between 0 and 1, so that no form gives it away."""
    place = rng.randrange(len(answer))
    digit = int(answer[place])
    digit = 1 - digit if place == 0 else (digit + rng.choice((1, 9))) % 10
    return f"{answer[:place]}{digit}{answer[place + 1 :]}"


def text_rows(training: list[Pair], rng: random.Random) -> list[dict[str, Any]]:
    """Return texts to pretrain on: sums of training pairs among sentences of words."""
    texts = [stated_sum(*pair, rng) for pair in rng.sample(training, STATED_SUMS)]
    texts += [sentence(rng) for _ in range(SENTENCES)]
    rng.shuffle(texts)
    return [{"text": text} for text in texts]


def _question(pair: Pair, rng: random.Random) -> dict[str, str]:
    a, b = (f"{number:02d}" for number in pair)
    return {"role": "user", "content": rng.choice(WORDINGS).format(a=a, b=b)}


def answer_of(pair: Pair) -> str:
    """Return the sum with three digits, so that every answer has the same length."""
    return f"{sum(pair):03d}"


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write one JSON object per line, in UTF-8 and with ``\\n`` on every system."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the data sets and the tokenizer that ship.")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder to write to (default: dataset/)"
    )
    out = parser.parse_args().out
    build(out)
    print(f"built {', '.join(path.name for path in sorted(out.glob('*.jsonl')))} and tokenizer/ in {out}")
