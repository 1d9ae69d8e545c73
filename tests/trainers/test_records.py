import json

import pytest

from trainers.records import Records, read_rows


def steps_of(path):
    return [row["step"] for row in read_rows(path)]


def test_a_line_holds_the_flat_envelope(tmp_path):
    Records(tmp_path).metrics(10, {"loss": 0.5}, epoch=1, total_steps=250)
    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    assert row.pop("time") > 0
    assert row == {"step": 10, "total_steps": 250, "epoch": 1, "values": {"loss": 0.5}}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite_are_refused_and_not_written(tmp_path, value):
    with pytest.raises(ValueError, match="step 3: reward not finite"):
        Records(tmp_path).metrics(3, {"loss": 1.0, "reward": value}, epoch=1, total_steps=5)
    assert not (tmp_path / "metrics.jsonl").exists()


def test_dropping_after_a_step_leaves_no_step_twice(tmp_path):
    records = Records(tmp_path)
    for step in (1, 2, 3, 4):
        records.metrics(step, {"loss": float(step)}, epoch=1, total_steps=6)
        records.sample({"step": step, "kind": "train"})
    records.drop_after(2)
    records.metrics(3, {"loss": 9.0}, epoch=1, total_steps=6)
    assert steps_of(tmp_path / "metrics.jsonl") == [1, 2, 3]
    assert steps_of(tmp_path / "samples.jsonl") == [1, 2]
    assert records.last == {"loss": 9.0}


def test_first_and_last_values_survive_a_restart(tmp_path):
    records = Records(tmp_path)
    records.metrics(0, {"eval/greedy_accuracy": 0.1}, epoch=1, total_steps=2)
    records.metrics(1, {"loss": 3.0}, epoch=1, total_steps=2)
    again = Records(tmp_path)
    again.metrics(2, {"loss": 2.0}, epoch=1, total_steps=2)
    assert again.first == {"eval/greedy_accuracy": 0.1, "loss": 3.0}
    assert again.last == {"eval/greedy_accuracy": 0.1, "loss": 2.0}
    assert again.evaluations == {0: {"eval/greedy_accuracy": 0.1}}


def test_lines_in_pieces_are_left_out_wherever_they_stand(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b'{"step": 1}\n\0\0\0\n{"st\n\xe5\x8a\n7\n{"kind": "eval"}\n{"step": 2}\n{"step": 3}')
    assert read_rows(path) == [{"step": 1}, {"step": 2}]


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path):
    Records(tmp_path).metrics(1, {"loss": 3.0}, epoch=1, total_steps=2)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "val')
    records = Records(tmp_path)
    records.drop_after(1)
    assert steps_of(tmp_path / "metrics.jsonl") == [1]
