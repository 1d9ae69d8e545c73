"""What the theme shows around every page: name, icons, and the sidebar with the links that a person may follow."""

from collections.abc import Callable

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _


def may(right: str) -> Callable[[HttpRequest], bool]:
    """Return whether who asks has a right: a link that would be refused is not shown."""
    return lambda request: request.user.has_perm(right)


def sees_jobs(request: HttpRequest) -> bool:
    """Return whether who asks sees the team's jobs, and with them what the queue does."""
    return request.user.has_perm("jobs.view_job") or request.user.has_perm("jobs.change_job")


UNFOLD = {
    "SITE_TITLE": "Nightshift",
    "SITE_HEADER": "Nightshift",
    "SITE_SYMBOL": "dark_mode",
    "SHOW_LANGUAGES": True,
    "DASHBOARD_CALLBACK": "jobs.admin.home.dashboard",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("jobs/favicon.svg")},
    ],
    "STYLES": [lambda request: static("jobs/nightshift.css")],
    "SCRIPTS": [lambda request: static("jobs/timezone.js")],
    "SIDEBAR": {
        "navigation": [
            {
                "title": _("Training"),
                "items": [
                    {
                        "title": _("Jobs"),
                        "permission": sees_jobs,
                        "icon": "list_alt",
                        "link": reverse_lazy("admin:jobs_job_changelist"),
                        # The theme would mark this one for "Add job" and "In order" as well.
                        "active": lambda request: (
                            "/jobs/job/" in request.path and not request.path.endswith(("/add/", "/queue/"))
                        ),
                    },
                    {
                        "title": _("Add job"),
                        "permission": may("jobs.add_job"),
                        "icon": "add_circle",
                        "link": reverse_lazy("admin:jobs_job_add"),
                    },
                    {
                        "title": _("Training configs"),
                        "permission": may("jobs.view_trainingconfig"),
                        "icon": "tune",
                        "link": reverse_lazy("admin:jobs_trainingconfig_changelist"),
                    },
                    {
                        "title": _("Batches"),
                        "permission": sees_jobs,
                        "icon": "dynamic_feed",
                        "link": reverse_lazy("admin:jobs_batch_changelist"),
                    },
                ],
            },
            {
                "title": _("Queue"),
                "items": [
                    {
                        "title": _("In order"),
                        "permission": sees_jobs,
                        "icon": "format_list_numbered",
                        "link": reverse_lazy("admin:jobs_job_queue"),
                    },
                    {
                        "title": _("Windows"),
                        "permission": sees_jobs,
                        "icon": "bedtime",
                        "link": reverse_lazy("admin:jobs_window_changelist"),
                    },
                    {
                        "title": _("Limits"),
                        "permission": sees_jobs,
                        "icon": "speed",
                        "link": reverse_lazy("admin:jobs_limit_changelist"),
                    },
                    {
                        "title": _("Failure patterns"),
                        "permission": sees_jobs,
                        "icon": "troubleshoot",
                        "link": reverse_lazy("admin:jobs_failurepattern_changelist"),
                    },
                    {
                        "title": _("Retention"),
                        "permission": sees_jobs,
                        "icon": "auto_delete",
                        "link": reverse_lazy("admin:jobs_retentionrule_changelist"),
                    },
                ],
            },
            {
                "title": _("Machines"),
                "items": [
                    {
                        "title": _("Devices"),
                        "permission": sees_jobs,
                        "icon": "developer_board",
                        "link": reverse_lazy("admin:jobs_device_changelist"),
                    },
                    {
                        "title": _("Workers"),
                        "permission": sees_jobs,
                        "icon": "memory",
                        "link": reverse_lazy("admin:jobs_worker_changelist"),
                    },
                    {
                        "title": _("Hosts"),
                        "permission": sees_jobs,
                        "icon": "dns",
                        "link": reverse_lazy("admin:jobs_host_changelist"),
                    },
                    {
                        "title": _("Events"),
                        "permission": sees_jobs,
                        "icon": "history",
                        "link": reverse_lazy("admin:jobs_event_changelist"),
                    },
                ],
            },
            {
                "title": _("People"),
                "items": [
                    {
                        "title": _("Users"),
                        "permission": may("auth.view_user"),
                        "icon": "person",
                        "link": reverse_lazy("admin:auth_user_changelist"),
                    },
                    {
                        "title": _("Groups"),
                        "permission": may("auth.view_group"),
                        "icon": "group",
                        "link": reverse_lazy("admin:auth_group_changelist"),
                    },
                ],
            },
        ],
    },
}
