"""The kernel's counter of processes killed for lack of memory."""

from jobs.worker.memory import oom_kills


def counted(tmp_path, groups):
    (tmp_path / "cgroup").write_text(groups)
    return oom_kills(tmp_path / "cgroup", tmp_path / "mount", tmp_path / "vmstat")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_version_2_counts_in_memory_events(tmp_path):
    write(tmp_path / "mount" / "job" / "memory.events", "low 0\noom 3\noom_kill 2\n")
    assert counted(tmp_path, "0::/job\n") == 2


def test_version_1_counts_in_oom_control(tmp_path):
    write(tmp_path / "mount" / "memory" / "job" / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    assert counted(tmp_path, "4:cpu:/job\n9:memory:/job\n") == 5


def test_of_nested_groups_ones_own_counts_and_not_what_was_killed_above(tmp_path):
    write(tmp_path / "mount" / "memory" / "a" / "b" / "memory.oom_control", "oom_kill_disable 0\noom_kill 1\n")
    write(tmp_path / "mount" / "memory" / "memory.oom_control", "oom_kill_disable 0\noom_kill 7\n")
    assert counted(tmp_path, "4:memory:/a/b\n0::/\n") == 1


def test_a_container_that_does_not_see_its_groups_path_counts_at_the_mount(tmp_path):
    write(tmp_path / "mount" / "memory.events", "oom_kill 4\n")
    assert counted(tmp_path, "0::/system.slice/docker-12ab.scope\n") == 4


def test_without_a_group_the_machines_own_counter_tells(tmp_path):
    write(tmp_path / "vmstat", "nr_free_pages 12\noom_kill 3\n")
    assert counted(tmp_path, "0::/\n") == 3
    (tmp_path / "cgroup").unlink()
    assert oom_kills(tmp_path / "cgroup", tmp_path, tmp_path / "vmstat") == 3


def test_without_any_counter_nothing_is_counted(tmp_path):
    assert oom_kills(tmp_path / "absent", tmp_path, tmp_path / "absent") == 0
