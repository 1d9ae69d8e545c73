"""The command line of the trainers, derived from their configs. Imports no torch."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from trainers.configs import TRAINING_TYPES, Group, TrainConfig, about, choices_of

BAD_CONFIGURATION = 2


class RunOptions(BaseModel):
    """Where one execution runs; not part of what was asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_dir: str | None = None
    device: str | None = None
    processes: int = Field(1, ge=1)

    @field_validator("run_dir", "device")
    @classmethod
    def refuse_unprintable_text(cls, value: str | None) -> str | None:
        if value is not None and not value.isprintable():
            raise ValueError("must not contain line breaks or control characters")
        return value


class Command(BaseModel):
    """One parsed command line."""

    model_config = ConfigDict(frozen=True)

    config: TrainConfig
    options: RunOptions


def to_argv(config: TrainConfig) -> list[str]:
    """Return the flags that reproduce ``config``: every parameter that is set, switches as 0 or 1."""
    argv: list[str] = []
    for name, value in config.model_dump().items():
        if value is not None:
            argv += [f"--{name}", str(int(value)) if isinstance(value, bool) else str(value)]
    return argv


def command_line(config: TrainConfig, run_dir: str, processes: int = 1) -> list[str]:
    """Return the arguments after ``python`` that run ``config`` in ``run_dir``."""
    several = ["--processes", str(processes)] if processes > 1 else []
    return ["-m", "trainers", config.type_name, "--run_dir", run_dir, *several, *to_argv(config)]


def parse_args(type_name: str, argv: Sequence[str]) -> TrainConfig:
    """Return the config that the flags of one type describe.

    Raises:
        ValidationError: a value is out of bounds.
        SystemExit: a flag does not exist (status 2), or help was asked for (status 0).
    """
    return parse_command([type_name, *argv]).config


def parse_command(argv: Sequence[str]) -> Command:
    """Return what ``<type> --flag value ...`` asks for. Raises as ``parse_args`` does."""
    values = vars(build_parser().parse_args(argv))
    config_class = TRAINING_TYPES[values.pop("type")]
    options = RunOptions(**{name: values.pop(name) for name in RunOptions.model_fields if name in values})
    return Command.model_construct(config=config_class.model_validate(values), options=options)


def parse_or_exit(argv: Sequence[str]) -> Command:
    """Return the command, or end the program with one line per wrong value and status 2."""
    try:
        return parse_command(argv)
    except ValidationError as error:
        for line in error_lines(error):
            print(f"error: {line}", file=sys.stderr)
        raise SystemExit(BAD_CONFIGURATION) from None


def error_lines(error: ValidationError) -> list[str]:
    """Return one sentence per wrong parameter, its flag first."""
    return [f"--{name}: {message}" for name, message in field_errors(error).items()]


def field_errors(error: ValidationError) -> dict[str, str]:
    """Return what is wrong with each parameter, by name."""
    found: dict[str, str] = {}
    for item in error.errors(include_url=False):
        name = str(item["loc"][0]) if item["loc"] else "parameters"
        message = item["msg"].removeprefix("Value error, ")
        found.setdefault(name, f"{message} (got {item['input']!r})")
    return found


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line; what every flag is stands in ``--help``."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_CONFIGURATION, f"error: {message}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all training types."""
    parser = OneLineParser(prog="python -m trainers", allow_abbrev=False, description="Train a small language model.")
    types = parser.add_subparsers(dest="type", required=True, metavar="type")
    for name, config_class in TRAINING_TYPES.items():
        summary = (config_class.__doc__ or "").strip().splitlines()[0]
        _add_flags(types.add_parser(name, help=summary, description=summary, allow_abbrev=False), config_class)
    return parser


def _add_flags(parser: argparse.ArgumentParser, config_class: type[TrainConfig]) -> None:
    where = parser.add_argument_group("This run")
    where.add_argument(
        "--run_dir",
        default=argparse.SUPPRESS,
        help="folder of log, metrics, samples, checkpoint and model (default: a new one under runs/)",
    )
    where.add_argument("--device", default=argparse.SUPPRESS, help="cpu or cuda:N (default: cuda:0 where there is one)")
    where.add_argument(
        "--processes",
        default=argparse.SUPPRESS,
        help="processes that share every optimizer step, one per GPU; each takes batch_size rows (default: 1)",
    )
    groups = {group: parser.add_argument_group(group.value) for group in Group}
    for name, field in config_class.model_fields.items():
        groups[about(field).group].add_argument(
            f"--{name}", default=argparse.SUPPRESS, metavar=_metavar(field), help=_help(field)
        )


def _metavar(field: FieldInfo) -> str:
    if field.annotation is bool:
        return "{0,1}"
    options = choices_of(field)
    return "{" + ",".join(options) + "}" if options else "VALUE"


def _help(field: FieldInfo) -> str:
    default: Any = int(field.default) if isinstance(field.default, bool) else field.default
    return f"{about(field).help} (default: {'unset' if default is None else default})".replace("%", "%%")
