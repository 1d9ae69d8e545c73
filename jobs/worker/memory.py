"""How often the kernel killed a process of this control group for lack of memory."""

from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


def oom_kills(groups: Path = Path("/proc/self/cgroup"), mount: Path = MOUNT) -> int:
    """Return the counter of version 2 or 1 of control groups; 0 where there is none."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return 0
    return max((_counter(path) for line in lines for path in _files(line, mount)), default=0)


def _files(line: str, mount: Path) -> list[Path]:
    """Return where the group of one line of /proc/self/cgroup keeps its counter; containers see it at the mount."""
    _, controllers, group = line.split(":", 2)
    if not controllers:
        return [mount / group.lstrip("/") / "memory.events", mount / "memory.events"]
    if "memory" in controllers.split(","):
        folder = mount / "memory"
        return [folder / group.lstrip("/") / "memory.oom_control", folder / "memory.oom_control"]
    return []


def _counter(path: Path) -> int:
    try:
        fields = dict(line.split() for line in path.read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(fields.get("oom_kill", 0))
