"""Build the small tokenizer that ships: byte-level BPE with digits one by one, and MiniMind's chat format."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 384
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")  # 0 pads, 1 begins, 2 ends: MiniMind's numbers
THINKING = ("<think>", "</think>")  # single tokens that stay in the decoded text

# Qwen3's forms of thinking, tools and their results, but with all thinking kept: what a row says is learned whole.
CHAT_TEMPLATE = """\
{%- if tools -%}
{{ '<|im_start|>system\\n' }}
{%- if messages[0]['role'] == 'system' and messages[0]['content'] -%}
{{ messages[0]['content'] + '\\n\\n' }}
{%- endif -%}
{{ '<tools>\\n' }}
{%- for tool in tools -%}
{{ tool | tojson + '\\n' }}
{%- endfor -%}
{{ '</tools>\\nCall: <tool_call>\\n{"name": ..., "arguments": {...}}\\n</tool_call><|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{%- if message['role'] == 'tool' -%}
{%- if loop.first or loop.previtem['role'] != 'tool' -%}
{{ '<|im_start|>user' }}
{%- endif -%}
{{ '\\n<tool_response>\\n' + message['content'] + '\\n</tool_response>' }}
{%- if loop.last or loop.nextitem['role'] != 'tool' -%}
{{ '<|im_end|>\\n' }}
{%- endif -%}
{%- elif not (tools and loop.first and message['role'] == 'system') -%}
{{ '<|im_start|>' + message['role'] + '\\n' }}
{%- if message['reasoning_content'] -%}
{{ '<think>\\n' + message['reasoning_content'].strip('\\n') + '\\n</think>\\n\\n' }}
{%- endif -%}
{{ message['content'] }}
{%- for call in message['tool_calls'] or [] -%}
{%- set function = call['function'] or call -%}
{%- if message['content'] or not loop.first -%}
{{ '\\n' }}
{%- endif -%}
{{ '<tool_call>\\n{"name": "' + function['name'] + '", "arguments": ' }}
{{- function['arguments'] if function['arguments'] is string else (function['arguments'] or {}) | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor -%}
{{ '<|im_end|>\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{ '<|im_start|>assistant\\n' }}
{%- endif -%}
"""

# What the merges are learned from, besides the wordings of the data: roles, and the commonest words of either language.
# Roles and wordings count more, so that the small model reads few tokens.
OFTEN = 50
FREQUENT = ("system user assistant tool", "user", "assistant")
CORPUS = (
    "the of and to in is that it for you was on are with as this be at have from or one had by but not what all "
    "we were when your can said there use an each which she do how their if will up other about out many then "
    "them these so some her would make like him into time has look two more write go see number no way could "
    "people my than first water been call who oil its now find long down day did get come made may part think "
    "answer question please sum plus add",
    "的 一 是 不 了 在 人 有 我 他 这 个 们 中 来 上 大 为 和 国 地 到 以 说 时 要 就 出 会 可 也 你 对 生 "
    "能 而 子 那 得 于 着 下 自 之 年 过 发 后 作 里 用 道 行 所 然 家 种 事 成 方 多 经 么 去 法 学 如 都 "
    "同 现 当 没 动 面 起 看 定 天 分 还 进 好 小 部 其 些 主 样 理 心 请 加 等 算",
)


def write_tokenizer(folder: Path, *, wordings: Sequence[str]) -> None:
    """Write a tokenizer folder that ``transformers.AutoTokenizer`` loads without a network."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = json.loads(train_tokenizer([*FREQUENT * OFTEN, *list(wordings) * OFTEN, *CORPUS]).to_str())
    for token in tokenizer["added_tokens"]:
        token["special"] = token["content"] in SPECIAL
    _write_json(folder / "tokenizer.json", tokenizer)
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": SPECIAL[0],
            "bos_token": SPECIAL[1],
            "eos_token": SPECIAL[2],
            "clean_up_tokenization_spaces": False,
            "model_max_length": 32_768,
        },
    )
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8", newline="\n")


def train_tokenizer(corpus: Sequence[str]) -> Tokenizer:
    """Return a BPE over bytes, so that every text round-trips, which splits numbers into digits."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[*SPECIAL, *THINKING],
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")
