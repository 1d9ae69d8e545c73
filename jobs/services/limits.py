"""How many jobs a person may run and have waiting."""

from django.contrib.auth.models import User
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _

from jobs.models import Job, Limit


def running_limits() -> dict[int | None, int | None]:
    """Return how many jobs each person may run at a time, by user id, everybody else under ``None``.

    A limit of ``None`` is no limit.
    """
    return dict(Limit.objects.values_list("person", "max_running"))


def waiting_limit(person: User) -> int | None:
    """Return how many jobs a person may have waiting; ``None`` is no limit."""
    limits = Limit.objects.filter(Q(person=person) | Q(person=None))
    rows: dict[int | None, int | None] = dict(limits.values_list("person", "max_queued"))
    return rows.get(person.pk, rows.get(None))


def refuse_more_waiting(person: User) -> None:
    """Refuse a person who has as many jobs waiting, queued or held, as allowed.

    The person's row is locked until the transaction ends, so that of two submissions at once one is counted.

    Raises:
        ValidationError: it names the limit and what to do.
    """
    if (most := waiting_limit(person)) is None:
        return
    User.objects.select_for_update(no_key=True).get(pk=person.pk)
    if Job.objects.filter(owner=person, status__in=Job.WAITING).count() >= most:
        told = _("%(person)s's limit of waiting jobs is %(most)d and reached: wait until one starts, or cancel one")
        raise ValidationError({NON_FIELD_ERRORS: [told % {"person": person, "most": most}]})
