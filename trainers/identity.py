"""What must be unchanged for a checkpoint to be continued: the same training type, processes, model, rows and data."""

from dataclasses import asdict
from typing import Any

from trainers.configs import TrainConfig
from trainers.errors import ConfigurationError
from trainers.ranks import Ranks
from trainers.schedule import Schedule


def identity_of(config: TrainConfig, schedule: Schedule, ranks: Ranks, data_sha256: str | None) -> dict[str, Any]:
    """Return plain values that two executions of one run share; the most telling come first."""
    return {
        "type": config.type_name,
        "processes": ranks.world_size,
        **asdict(config.model_size()),
        **{name: getattr(config, name) for name in config.fixed},
        **schedule.identity(),
        "data_sha256": data_sha256,
    }


def require_same(made_with: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise ConfigurationError when a checkpoint that was ``made_with`` these values is continued with others."""
    if (kind := made_with["type"]) != now["type"]:
        raise ConfigurationError(f"the checkpoint is one of {kind}, not of {now['type']}; start a new job instead")
    if (count := made_with["processes"]) != now["processes"]:
        raise ConfigurationError(
            f"the checkpoint was made by {count} processes, now there are {now['processes']}; "
            "resume with as many, or start a new job"
        )
    told = [name for name in now if name not in ("type", "processes", "data_sha256")]
    if changed := [f"{name} {made_with[name]}, now {now[name]}" for name in told if made_with[name] != now[name]]:
        raise ConfigurationError(f"the checkpoint was made with {'; '.join(changed)}; start a new job instead")
    if (data := made_with["data_sha256"]) != now["data_sha256"]:
        raise ConfigurationError(
            f"the file at --data_path has changed since the checkpoint (SHA-256 {_short(data)}, now "
            f"{_short(now['data_sha256'])}); bring the old one back, or start a new job"
        )


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "unknown"
