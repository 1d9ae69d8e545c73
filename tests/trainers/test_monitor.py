import sys
import types

import pytest

from trainers.configs import SFTConfig
from trainers.errors import ConfigurationError
from trainers.monitor import open_monitor


def fake_library(monkeypatch, name):
    library = types.ModuleType(name)
    library.init = lambda **settings: settings
    monkeypatch.setitem(sys.modules, name, library)


def test_none_is_no_monitor():
    assert open_monitor(SFTConfig(), name="1", folder="/tmp") is None


@pytest.mark.parametrize("library", ["wandb", "swanlab"])
def test_a_library_that_is_not_installed_is_one_line(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigurationError, match=f"^--train_monitor {library}: it is not installed; pip"):
        open_monitor(SFTConfig(train_monitor=library), name="1", folder="/tmp")


def test_wandb_stays_offline_unless_the_operator_says_otherwise(monkeypatch):
    fake_library(monkeypatch, "wandb")
    config = SFTConfig(train_monitor="wandb", train_project="p")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert open_monitor(config, name="1", folder="/x")["mode"] == "offline"
    monkeypatch.setenv("WANDB_MODE", "online")
    assert open_monitor(config, name="1", folder="/x")["mode"] == "online"
