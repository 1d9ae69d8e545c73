"""Choosing a path: the folders below the allowed roots, and the upload of a data file."""

import os
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.http import HttpRequest, JsonResponse
from django.utils.text import get_valid_filename
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from jobs.admin.permissions import require_submitter
from trainers.paths import TRAINERS, PathRefused, allowed_roots, confine_path, state_folder

UPLOAD_LIMIT = 512 * 1024 * 1024
ENTRIES_SHOWN = 2000
DATA_SUFFIX = ".jsonl"
LONGEST_STEM = 60  # characters; a name has 255 bytes


@require_GET
def folder(request: HttpRequest) -> JsonResponse:
    """Answer with what lies in the folder ``under``, or with the allowed roots."""
    require_submitter(request)
    under = request.GET.get("under", "").strip()
    try:
        if not under:
            entries = [_entry(root, name=str(root)) for root in allowed_roots() if root.is_dir()]
            return JsonResponse({"here": "", "parent": None, "entries": entries})
        here = confine_path(under)
        here = here if here.is_dir() else here.parent
        confine_path(str(here))
    except PathRefused as refused:
        return JsonResponse({"error": str(refused)}, status=400)
    parent = parameter_path(here.parent) if _is_allowed(here.parent) else ""
    return JsonResponse({"here": parameter_path(here), "parent": parent, "entries": _entries(here)})


@require_POST
def upload(request: HttpRequest) -> JsonResponse:
    """Keep a data file under the person's own folder, never over another, and answer with its path."""
    require_submitter(request)
    file = request.FILES.get("file")
    if file is None or not file.name or not file.name.endswith(DATA_SUFFIX):
        return JsonResponse({"error": _("Choose a .jsonl file.")}, status=400)
    if (file.size or 0) > UPLOAD_LIMIT:
        limit = UPLOAD_LIMIT // 1024**2
        return JsonResponse(
            {"error": _("At most %(limit)d MiB; copy larger files to the host.") % {"limit": limit}}, status=400
        )
    storage = FileSystemStorage(location=settings.MEDIA_ROOT)
    name = storage.save(f"{request.user.pk}/{kept_name(file.name)}", file)
    return JsonResponse({"path": parameter_path(Path(storage.path(name)))})


def kept_name(name: str) -> str:
    """Return a data file's name as it is kept: visible, and short enough for every file system."""
    stem = get_valid_filename(name.removesuffix(DATA_SUFFIX) or "data").lstrip(".") or "data"
    return stem[:LONGEST_STEM] + DATA_SUFFIX


def parameter_path(path: Path) -> str:
    """Return a path as parameters write it: relative to ``trainers/`` where that is possible."""
    if path.is_relative_to(state_folder() / "runs"):
        return str(path.relative_to(state_folder()))
    return os.path.relpath(path, TRAINERS) if path.is_relative_to(TRAINERS.parent) else str(path)


def _entries(here: Path) -> list[dict[str, object]]:
    """List folders and data files: no hidden names, nothing whose real place lies outside the roots."""
    try:
        found = sorted(here.iterdir(), key=lambda path: (not path.is_dir(), path.name))
    except OSError:
        return []
    return [_entry(path, name=path.name) for path in islice(filter(_is_shown, found), ENTRIES_SHOWN)]


def _is_shown(path: Path) -> bool:
    if path.name.startswith((".", "__")):
        return False
    try:
        confine_path(str(path))
    except PathRefused:
        return False
    return path.is_dir() or path.suffix == DATA_SUFFIX


def _entry(path: Path, *, name: str) -> dict[str, object]:
    return {"name": name, "path": parameter_path(path), "folder": path.is_dir()}


def _is_allowed(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in allowed_roots())
