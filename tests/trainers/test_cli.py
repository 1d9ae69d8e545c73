import random
import subprocess
import sys
import time

import pytest
from pydantic import ValidationError

from trainers.cli import parse_args, parse_or_exit, to_argv
from trainers.configs import TRAINING_TYPES, GRPOConfig, SFTConfig, choices_of
from trainers.paths import REPOSITORY

HEADS = {"num_attention_heads": 16, "num_key_value_heads": 8}
SIZES = {"hidden_size": 256, "student_hidden_size": 256, "teacher_hidden_size": 512}
NUMBERS = {"max_steps": 7, "eval_interval": 3, "rho_min": 0.25, "rho_max": 0.95, **HEADS, **SIZES}
TEXTS = {
    "eval_data_path": "../dataset/a b'c.jsonl",
    "init_path": "runs/3/model",
    "tokenizer_path": "../tokenizer",
    "reward_weights": "answer=1,length=-0.5",
    "from_weight": "pre.train-1",
    "teacher_path": "runs/4/model",
}


def another_value(config_class, name, draw):
    """Return a valid value that is not the default."""
    field = config_class.model_fields[name]
    if field.annotation is bool:
        return not field.default
    if options := choices_of(field):
        return draw.choice([option for option in options if option != field.default])
    if name == "stop_at":
        return f"{config_class.eval_metrics[0]}>=0.35"
    if name in NUMBERS or name in TEXTS:
        return (NUMBERS | TEXTS)[name]
    if isinstance(field.default, int):
        return field.default + 1
    return field.default * 0.37 if isinstance(field.default, float) and field.default else field.default


@pytest.mark.parametrize("type_name", TRAINING_TYPES)
@pytest.mark.parametrize("seed", range(20))
def test_the_command_line_reproduces_every_config(type_name, seed):
    draw = random.Random(seed)
    config_class = TRAINING_TYPES[type_name]
    changed = {
        name: another_value(config_class, name, draw)
        for name in config_class.model_fields
        if seed == 0 or draw.random() < 0.5
    }
    if not {"eval_data_path", "eval_interval"} <= changed.keys():
        changed = {name: value for name, value in changed.items() if not name.startswith(("eval_", "stop_at"))}
    if changed.keys() & (HEADS | SIZES).keys():
        changed |= HEADS | {name: size for name, size in SIZES.items() if name in config_class.model_fields}
    config = config_class.model_validate(changed)
    assert parse_args(type_name, to_argv(config)) == config


def test_every_flag_reaches_the_config():
    for type_name, config_class in TRAINING_TYPES.items():
        written = {flag.removeprefix("--") for flag in to_argv(config_class())[::2]}
        unset = {name for name, value in config_class() if value is None}
        assert written == config_class.model_fields.keys() - unset, type_name


def test_grpo_defaults_are_those_of_the_script():
    words = " ".join(to_argv(GRPOConfig()))
    assert "--beta 0.02 --num_generations 8 --reasoning 1 --reward_model_path ../../internlm2-1_8b-reward" in words


@pytest.mark.parametrize(
    "argv", [["sft", "--lerning_rate", "1"], ["sft", "--beta", "0.1"], ["dance"], [], ["sft", "--learning", "1e-3"]]
)
def test_an_unknown_flag_or_type_exits_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_or_exit(argv)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["sft", "--beta", "0.1"], ["dance"], [], ["sft", "--epochs"]])
def test_a_wrong_command_line_is_one_line_that_points_to_help(argv, capsys):
    with pytest.raises(SystemExit):
        parse_or_exit(argv)
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.endswith(" --help\n")
    assert error.count("\n") == 1


@pytest.mark.parametrize("run_dir", ["runs/a\nb", "runs/a\0b", "runs/\udcff"])
def test_a_run_folder_s_name_is_printable(run_dir, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_or_exit(["sft", "--run_dir", run_dir])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: --run_dir: must not contain line breaks or control characters")


def test_each_wrong_value_is_one_line_with_its_flag(capsys):
    with pytest.raises(SystemExit) as ended:
        parse_or_exit(["sft", "--epochs", "0", "--learning_rate", "fast"])
    assert ended.value.code == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: --epochs: Input should be greater than or equal to 1")
    assert second.startswith("error: --learning_rate: Input should be a valid number")


def test_a_group_of_one_is_refused(capsys):
    """Report 27: alone, a completion has nothing to be compared with, and its standard deviation is no number."""
    with pytest.raises(SystemExit) as ended:
        parse_or_exit(["grpo", "--num_generations", "1"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: --num_generations: Input should be greater than or equal to 2")


@pytest.mark.parametrize("name", ["save_dir", "save_weight", "data_path", "init_path"])
@pytest.mark.parametrize("text", ["-rf", "--device", "a\nb"])
def test_text_that_looks_like_an_option_or_has_line_breaks_is_refused(name, text):
    with pytest.raises(ValidationError):
        SFTConfig.model_validate({name: text})


@pytest.mark.parametrize("type_name", TRAINING_TYPES)
def test_help_comes_within_a_second_and_without_torch(type_name):
    code = (
        "import sys; sys.argv = ['trainers', sys.argv[1], '--help']\n"
        "import atexit; atexit.register(lambda: print('torch' in sys.modules, 'transformers' in sys.modules))\n"
        "import runpy; runpy.run_module('trainers', run_name='__main__')"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code, type_name], cwd=REPOSITORY, capture_output=True, text=True)
    assert time.monotonic() - began < 3, "generous, because the machine may be busy"
    assert done.returncode == 0
    assert "--learning_rate" in done.stdout
    assert done.stdout.splitlines()[-1] == "False False"
