"""The kernel's counter of processes killed for lack of memory."""

from jobs.worker.memory import oom_kills


def test_version_2_counts_in_memory_events(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (tmp_path / "cgroup").write_text("0::/job\n")
    assert oom_kills(tmp_path / "cgroup", tmp_path) == 2


def test_version_1_counts_in_oom_control(tmp_path):
    (tmp_path / "memory" / "job").mkdir(parents=True)
    (tmp_path / "memory" / "job" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    (tmp_path / "cgroup").write_text("4:cpu:/job\n9:memory:/job\n")
    assert oom_kills(tmp_path / "cgroup", tmp_path) == 5


def test_without_control_groups_nothing_is_counted(tmp_path):
    assert oom_kills(tmp_path / "absent", tmp_path) == 0
