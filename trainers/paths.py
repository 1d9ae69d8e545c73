"""Where a path written in a parameter lies on this host, and whether it may be used. Imports no torch.

A relative path is relative to ``trainers/``, as in the scripts (``../out``). A path that begins with ``runs/`` lies in
the state folder instead, so that a command names the same run folder on every host.
"""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TRAINERS = REPOSITORY / "trainers"
DEFAULT_REWARD_MODEL = "../../internlm2-1_8b-reward"
NOWHERE = {Path("/"), Path("/home"), Path("/root"), Path("/etc")}


class PathRefused(ValueError):
    """A path lies outside the folders that this installation allows."""


def state_folder() -> Path:
    """Return ``NIGHTSHIFT_HOME``, the folder of the database, runs, locks and broker."""
    return Path(os.environ.get("NIGHTSHIFT_HOME") or REPOSITORY / ".nightshift").resolve()


def resolve_path(value: str) -> Path:
    """Return where ``value`` lies, symbolic links resolved; whether it exists does not matter.

    Raises:
        PathRefused: no file can have this name, or its links lead in a circle.
    """
    base = state_folder() if value == "runs" or value.startswith("runs/") else TRAINERS
    try:
        path = (base / value).resolve()
        path.exists()  # finds the name that is too long, which resolve() lets pass
    except (OSError, RuntimeError, ValueError) as error:
        raise PathRefused(f"{value[:80]} cannot be a path here: {error}"[:300]) from None
    return path


def allowed_roots(*, writable: bool = False) -> list[Path]:
    """Return the folders under which a parameter's path may lie.

    Raises:
        PathRefused: ``NIGHTSHIFT_ALLOWED_ROOTS`` names the root folder or a home folder.
    """
    roots = [REPOSITORY, state_folder()]
    if not writable:
        roots.append((TRAINERS / DEFAULT_REWARD_MODEL).resolve())
    for text in filter(None, os.environ.get("NIGHTSHIFT_ALLOWED_ROOTS", "").split(os.pathsep)):
        root = Path(text).resolve()
        if root in NOWHERE or root == Path.home() or root.parent == Path("/home"):
            raise PathRefused(f"NIGHTSHIFT_ALLOWED_ROOTS: {root} is a root or home folder; name a folder inside it")
        roots.append(root)
    return roots


def confine_path(value: str, *, writable: bool = False) -> Path:
    """Return where ``value`` lies, once it is known to lie inside an allowed root.

    Raises:
        PathRefused: it lies outside, also by way of a symbolic link, or is no path.
    """
    path = resolve_path(value)
    roots = allowed_roots(writable=writable)
    if any(path.is_relative_to(root) for root in roots):
        return path
    listed = ", ".join(str(root) for root in roots)
    raise PathRefused(
        f"{value} is {path}, outside the allowed folders ({listed}); an operator can add one in "
        "NIGHTSHIFT_ALLOWED_ROOTS"
    )


def weight_name(name: str, hidden_size: int, *, moe: bool) -> str:
    """Return the scripts' name of a weight file."""
    return f"{name}_{hidden_size}{'_moe' if moe else ''}.pth"
