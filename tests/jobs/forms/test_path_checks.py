"""What a configuration names and this host lacks."""

from pathlib import Path

import pytest

from jobs.forms.path_checks import weight_warnings
from trainers.configs import GRPOConfig, SFTConfig


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of weights in an allowed root."""
    monkeypatch.setenv("NIGHTSHIFT_ALLOWED_ROOTS", str(tmp_path))
    return tmp_path


def test_weights_that_the_rule_would_miss_are_told_at_the_field_that_chooses_them(weights):
    file = f"{weights}/reason_512.pth"
    assert weight_warnings(GRPOConfig(save_dir=str(weights))) == {
        "start_from": f"the weights {file} are not on this host"
    }
    assert list(weight_warnings(SFTConfig(save_dir=str(weights)))) == ["from_weight"]


def test_weights_that_are_there_are_no_warning(weights):
    (weights / "full_sft_64_moe.pth").touch()
    assert weight_warnings(GRPOConfig(save_dir=str(weights), hidden_size=64, use_moe=True, reasoning=False)) == {}


def test_a_fresh_model_needs_no_weights(weights):
    assert weight_warnings(SFTConfig(save_dir=str(weights), from_weight="none")) == {}
