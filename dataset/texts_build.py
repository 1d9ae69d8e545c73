"""Build the texts to pretrain on: sums that are stated, and short sentences in the tokenizer's words."""

import random

STATEMENTS = (
    "{a}+{b}={sum}",
    "{a} and {b} make {sum}.",
    "The answer is {sum}, the sum of {a} and {b}.",
    "{a}+{b}等于{sum}。",
    "{a}加{b}等于{sum}。",
    "{a}与{b}的和是{sum}。",
)
ENGLISH = (
    ("we", "you", "they", "people", "he and she", "all of them"),
    ("can find", "will use", "would like", "could see", "may write about", "go to look at"),
    ("the water", "some words", "the first number", "this answer", "an other question", "more oil", "their own way"),
    ("now", "then", "each day", "many times", "with you", "all day long"),
)
CHINESE = (
    ("我们", "你们", "他", "人", "国家", "学生"),
    ("会用", "可以看", "要说", "能学", "发现了", "看到了"),
    ("这个方法", "那个家", "好多学生", "小事", "大地", "你的心", "主要的道理"),
    ("。", "，也会说出来。", "，因为天还好。", "，后来就回家。"),
)


def stated_sum(a: int, b: int, rng: random.Random) -> str:
    """Return a sentence that states the sum of ``a`` and ``b``, in numbers as long as those of the questions."""
    return rng.choice(STATEMENTS).format(a=f"{a:02d}", b=f"{b:02d}", sum=f"{a + b:03d}")


def sentence(rng: random.Random) -> str:
    """Return a short sentence, English or Chinese."""
    if rng.random() < 0.5:
        return " ".join(rng.choice(words) for words in ENGLISH).capitalize() + "."
    return "".join(rng.choice(words) for words in CHINESE)
