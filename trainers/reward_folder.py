"""Where a reward model lies and of which kind it is, known before anything heavy is loaded. Imports no torch."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from trainers.configs import RolloutConfig, parse_reward_weights
from trainers.errors import ConfigurationError, first_line
from trainers.paths import confine_path

OFF = "none"
WAYS_OUT = (
    "train one and point --reward_model_path to its model/ folder, point it to one you have, "
    "or say none for rule rewards only"
)


@dataclass(frozen=True)
class RewardFolder:
    """A folder that holds a reward model, and whether it brings its own code."""

    path: Path
    remote_code: bool


def wants_reward_model(config: RolloutConfig) -> bool:
    """Return whether a reward model takes part: it is named, and its weight is not 0."""
    return config.reward_model_path != OFF and parse_reward_weights(config.reward_weights)["reward_model"] != 0


def find_reward_model(path: str) -> RewardFolder:
    """Return the reward model that ``path`` names.

    Raises:
        ConfigurationError: there is none, it is no model that scores, or it brings code that is not allowed.
    """
    folder = confine_path(path)
    if not (folder / "config.json").is_file():
        found = "a folder without config.json" if folder.is_dir() else "nothing there"
        raise ConfigurationError(f"--reward_model_path {path}: looked in {folder} and found {found}; {WAYS_OUT}")
    try:
        described = json.loads((folder / "config.json").read_bytes())
        kinds = [str(kind) for kind in described.get("architectures") or []]
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"--reward_model_path {path}: {folder / 'config.json'} describes no model ({first_line(error)}); {WAYS_OUT}"
        ) from None
    if "auto_map" in described:
        if os.environ.get("NIGHTSHIFT_TRUST_REMOTE_CODE") != "1":
            raise ConfigurationError(
                f"the reward model in {folder} brings its own code; an operator can allow it with "
                f"NIGHTSHIFT_TRUST_REMOTE_CODE=1, or {WAYS_OUT}"
            )
        return RewardFolder(folder, remote_code=True)
    if not any(kind.endswith("ForSequenceClassification") for kind in kinds):
        raise ConfigurationError(
            f"--reward_model_path {path}: {folder} holds {', '.join(kinds) or 'no architecture'}, "
            f"which is no sequence-classification model; {WAYS_OUT}"
        )
    return RewardFolder(folder, remote_code=False)
