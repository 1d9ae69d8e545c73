"""How often the kernel killed a process of this control group for lack of memory."""

from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")  # counts for the whole machine, from which a worker without a group has its share


def oom_kills(groups: Path = Path("/proc/self/cgroup"), mount: Path = MOUNT, vmstat: Path = VMSTAT) -> int:
    """Return the counter of version 2 or 1 of control groups, else the machine's; 0 where there is none."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        lines = []
    files = [path for line in lines for path in _files(line, mount)]
    counts = (count for path in [*files, vmstat] if (count := _counter(path)) is not None)
    return next(counts, 0)


def _files(line: str, mount: Path) -> list[Path]:
    """Return where the group of one line of /proc/self/cgroup keeps its counter; containers see it at the mount."""
    _, controllers, group = line.split(":", 2)
    if not controllers:
        return [mount / group.lstrip("/") / "memory.events", mount / "memory.events"]
    if "memory" in controllers.split(","):
        folder = mount / "memory"
        return [folder / group.lstrip("/") / "memory.oom_control", folder / "memory.oom_control"]
    return []


def _counter(path: Path) -> int | None:
    try:
        fields = dict(line.split() for line in path.read_text().splitlines())
    except (OSError, ValueError):
        return None
    return int(fields["oom_kill"]) if "oom_kill" in fields else None
