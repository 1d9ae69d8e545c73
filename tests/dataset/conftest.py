import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

import dataset


@pytest.fixture(scope="session")
def tokenizer():
    return AutoTokenizer.from_pretrained(Path(dataset.__file__).parent / "tokenizer", local_files_only=True)


@pytest.fixture
def write_rows(tmp_path):
    def write(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
