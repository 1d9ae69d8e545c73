"""How many bytes a training writes, against models that are really built and run folders that are really written."""

import json

import pytest

from jobs.services.disk import COUNTED
from jobs.services.footprint import (
    Weights,
    checkpoint_bytes,
    exported_bytes,
    fresh_shapes,
    reference_bytes,
    starting_weights,
    vocabulary,
    written_bytes,
)
from tests.trainers.grpo_runs import save_start
from tests.trainers.lora_runs import argv as lora_argv
from tests.trainers.ppo_runs import argv as ppo_argv
from tests.trainers.sft_runs import argv as sft_argv
from trainers.attempt import run_attempt
from trainers.cli import parse_command
from trainers.configs import TRAINING_TYPES, ModelSize
from trainers.models import fresh_model
from trainers.tokenizer import load_tokenizer

NOTES = 100_000  # bytes that files hold besides their numbers, some hundred for each tensor


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a state folder with four conversations in ``runs/data.jsonl``."""
    monkeypatch.setenv("NIGHTSHIFT_HOME", str(tmp_path))
    (tmp_path / "runs").mkdir()
    turns = [{"role": "user", "content": "07+38"}, {"role": "assistant", "content": "045"}]
    row = json.dumps({"conversations": turns, "answer": "045"}) + "\n"
    (tmp_path / "runs" / "data.jsonl").write_text(4 * row)
    return tmp_path


def config_of(argv):
    return parse_command(argv).config


@pytest.mark.parametrize("use_moe", [False, True])
def test_parameters_are_those_of_the_model_that_is_built(use_moe):
    size = ModelSize(96, 3, use_moe, 6, 2)
    tokenizer = load_tokenizer(config_of(sft_argv("runs/1")))
    model = fresh_model(size, tokenizer)
    counted = Weights.of(fresh_shapes(size, vocabulary("../dataset/tokenizer")))
    assert counted.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_a_default_grpo_job_keeps_two_checkpoints_and_its_reference():
    config = TRAINING_TYPES["grpo"]()
    weights = Weights(parameters=1000, sides=0)
    assert checkpoint_bytes(config, weights) == 12_000
    assert written_bytes(config, weights) == 4_000 + 2 * 12_000 + 100_000_000
    assert written_bytes(config.replaced(beta=0), weights) == 2 * 12_000 + 100_000_000


def test_ppo_also_keeps_the_old_actor_and_a_critic_with_moments_of_its_own():
    assert checkpoint_bytes(TRAINING_TYPES["ppo"](), Weights(parameters=1000, sides=0)) == 28_000


def test_only_adapters_have_moments():
    config, weights = TRAINING_TYPES["lora"](lora_rank=2), Weights(parameters=1000, sides=25)
    assert checkpoint_bytes(config, weights) == 4 * (1000 + 50 + 2 * 50)


@pytest.mark.parametrize("argv", [sft_argv, ppo_argv, lora_argv])
def test_a_real_run_writes_what_was_expected(argv, home):
    save_start(home)
    command = parse_command(argv("runs/7", max_steps=1, epochs=1))
    weights = starting_weights(command.config)
    assert run_attempt(command) == 0
    run = home / "runs" / "7"
    checkpoint = (run / "checkpoint" / "state.pt").stat().st_size
    assert 0 <= checkpoint - checkpoint_bytes(command.config, weights) < NOTES
    assert 0 <= size_of(run / "model", "*.safetensors") - 4 * weights.parameters < NOTES
    reference = run / "checkpoint" / "reference.pt"
    kept = reference.stat().st_size if reference.exists() else 0
    assert 0 <= kept - reference_bytes(command.config, weights) < NOTES


def size_of(folder, pattern):
    return sum(path.stat().st_size for path in folder.glob(pattern))


def test_of_a_model_of_some_size_the_files_are_within_two_percent_of_what_was_expected(home):
    command = parse_command(sft_argv("runs/7", max_steps=1, epochs=1, hidden_size=256, num_hidden_layers=4))
    assert run_attempt(command) == 0
    weights, run = starting_weights(command.config), home / "runs" / "7"
    expected = checkpoint_bytes(command.config, weights)
    assert size_of(run / "checkpoint", "state.pt") == pytest.approx(expected, rel=0.01)
    written = size_of(run / "model", "*.safetensors") + size_of(home / "runs" / "out", "*.pth")
    # The scripts' file holds the embeddings twice.
    assert written == pytest.approx(exported_bytes(command.config, weights), rel=0.02)


def test_a_folder_counts_by_the_shapes_its_files_name(home):
    header = {
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "BF16", "shape": [10, 20], "data_offsets": [0, 400]},
    }
    text = json.dumps(header).encode()
    folder = home / "runs" / "3" / "model"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(400))
    config = TRAINING_TYPES["sft"](init_path="runs/3/model")
    assert starting_weights(config) == Weights(parameters=200, sides=30)


@pytest.mark.parametrize("content", [b"", b"\x05\0\0\0\0\0\0\0{bad}", b"\xff" * 8, None])
def test_weights_that_cannot_be_read_are_unknown(home, content):
    folder = home / "runs" / "3" / "model"
    if content is not None:
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(content)
    assert starting_weights(TRAINING_TYPES["sft"](init_path="runs/3/model")) is None


@pytest.mark.parametrize("kind", TRAINING_TYPES.values(), ids=TRAINING_TYPES)
def test_every_parameter_that_is_read_is_among_those_by_which_jobs_are_told_apart(kind):
    read = set()

    class Watched(kind):
        def __getattribute__(self, name):
            read.add(name)
            return super().__getattribute__(name)

    config = Watched.model_construct()
    written_bytes(config, starting_weights(config))
    assert {"num_attention_heads"} <= read & set(kind.model_fields) <= set(COUNTED)
