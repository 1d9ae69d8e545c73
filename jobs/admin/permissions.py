"""Who may do what with a job. Everybody sees the team's jobs; only the owner, or who may change any job, steers one."""

from collections.abc import Callable
from functools import wraps
from typing import Protocol

from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404

from jobs.models import Job, TrainingConfig

Person = User | AnonymousUser
LONGEST_NUMBER = 18  # digits; below 2**63
RELATED = ("owner", "batch", "worker__device", "device", "depends_on", "cancel_requested_by")


class JobView(Protocol):
    def __call__(self, request: HttpRequest, job: Job) -> HttpResponseBase: ...


def signed_in(request: HttpRequest) -> User:
    """Return who asks; the admin lets nobody in who has not signed in."""
    assert isinstance(request.user, User)
    return request.user


def may_see(user: Person) -> bool:
    """Tell whether a person sees the team's jobs."""
    return bool(user.has_perm("jobs.view_job") or user.has_perm("jobs.change_job"))


def may_submit(user: Person) -> bool:
    """Tell whether a person may queue jobs; who does sees what becomes of them."""
    return may_see(user) and bool(user.has_perm("jobs.add_job"))


def require_viewer(request: HttpRequest) -> None:
    """Raise PermissionDenied unless a person sees the team's jobs."""
    if not may_see(request.user):
        raise PermissionDenied


def require_submitter(request: HttpRequest) -> None:
    """Raise PermissionDenied unless a person may queue jobs."""
    if not may_submit(request.user):
        raise PermissionDenied


def may_steer(user: Person, job: Job) -> bool:
    """Tell whether a person may cancel, resume, hold or release a job."""
    return may_see(user) and (job.owner_id == user.pk or bool(user.has_perm("jobs.change_job")))


def may_operate(user: Person) -> bool:
    """Tell whether a person steers the queue for everybody: order, devices, windows, limits, retention."""
    return may_see(user) and bool(user.has_perm("jobs.operate"))


def require_operator(request: HttpRequest) -> None:
    """Raise PermissionDenied unless a person steers the queue."""
    if not may_operate(request.user):
        raise PermissionDenied


def may_edit_config(user: Person, saved: TrainingConfig) -> bool:
    """Tell whether a person may change a saved configuration: their own, a superuser any, nobody one that ships."""
    return not saved.builtin and (bool(user.is_superuser) or saved.owner_id == user.pk)


def number(object_id: int | str) -> int:
    """Return the number in an address; 404 for what is none, or is larger than any row's or file's."""
    text = str(object_id)
    if not text.isdecimal() or len(text) > LONGEST_NUMBER:
        raise Http404("this is no number")
    return int(text)


def on_job(view: JobView, *, steers: bool = False) -> Callable[..., HttpResponseBase]:
    """Return an admin view of one job that only those who may can open."""

    @wraps(view)
    def checked(request: HttpRequest, object_id: int | str) -> HttpResponseBase:
        job = get_object_or_404(Job.objects.select_related(*RELATED), pk=number(object_id))
        if not (may_steer(request.user, job) if steers else may_see(request.user)):
            raise PermissionDenied
        return view(request, job)

    return admin.site.admin_view(checked)
