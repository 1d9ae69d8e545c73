import torch

from trainers.configs import SFTConfig
from trainers.preparation import build_run
from trainers.ranks import ALONE
from trainers.records import read_rows
from trainers.schedule import Schedule


def test_a_step_that_fp16_skipped_is_recorded_without_the_norm_that_overflowed(tmp_path):
    lines: list[str] = []
    run = build_run(SFTConfig(), tmp_path, device="cpu", log=lines.append)
    run.scaler = torch.amp.GradScaler("cpu", enabled=True)
    run.schedule, run.total_steps, run.step = Schedule.of(SFTConfig(), ranks=ALONE, rows=32), 4, 1
    run.report({"loss": 0.5, "grad_norm": float("inf")}, shown={"loss": "loss", "grad_norm": "grad_norm"})
    (row,) = read_rows(tmp_path / "metrics.jsonl")
    assert row["values"].keys() == {"loss", "step_time"}
    assert lines[-1].startswith("Epoch:[1/2](1/2), loss: 0.5, ")
    assert "grad_norm" not in lines[-1]
