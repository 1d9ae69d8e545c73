import sys
import types

import pytest

from tests.trainers.sft_runs import run_sft
from trainers.configs import SFTConfig
from trainers.errors import ConfigurationError
from trainers.monitor import close_monitor, open_monitor


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


def test_swanlab_stays_offline_which_needs_no_dashboard_of_its_own(monkeypatch):
    fake_library(monkeypatch, "swanlab")
    monkeypatch.delenv("SWANLAB_MODE", raising=False)
    settings = open_monitor(SFTConfig(train_monitor="swanlab"), name="1", folder="/x")
    assert (settings["mode"], settings["logdir"]) == ("offline", "/x/swanlab")


class Recorder:
    """A monitor that remembers what it was told."""

    def __init__(self, **settings):
        self.steps: list[int] = []
        self.finished = 0

    def log(self, data, *, step):
        self.steps.append(step)

    def finish(self):
        self.finished += 1


@pytest.mark.parametrize(("flags", "code", "steps"), [({}, 0, [1, 2]), ({"init_path": "runs/none"}, 2, [])])
def test_it_hears_of_every_logged_step_and_is_closed_however_the_run_ends(home, monkeypatch, flags, code, steps):
    opened = []
    library = types.ModuleType("wandb")
    library.init = lambda **settings: opened.append(Recorder()) or opened[-1]
    monkeypatch.setitem(sys.modules, "wandb", library)
    assert run_sft("runs/1", train_monitor="wandb", max_steps=2, **flags) == code
    (monitor,) = opened
    assert (monitor.steps, monitor.finished) == (steps, 1)


def test_a_monitor_that_cannot_finish_does_not_fail_the_run():
    class Broken(Recorder):
        def finish(self):
            raise ConnectionError("no route")

    lines = []
    close_monitor(Broken(), log=lines.append)
    assert lines == ["warning: the monitor did not finish: ConnectionError: no route"]
