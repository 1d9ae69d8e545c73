"""``manage.py retention``: show what the retention rules would remove; with ``--apply``, remove it."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs.models import RetentionRule
from jobs.services import retention
from jobs.services.disk import gigabytes
from jobs.worker.removal import remove_due

HEADINGS = ("job", "owner", "ended", "host", "size")
ROW = "  {:<40.40} {:<12.12} {:<16} {:<20.20} {:>9}"


class Command(BaseCommand):
    help = "Show what each retention rule would remove; nothing is touched without --apply."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rule", help="this rule alone, by name")
        parser.add_argument("--apply", action="store_true", help="remove what the active rules name")

    def handle(self, *, rule: str | None, apply: bool, **_: Any) -> None:
        rules = RetentionRule.objects.filter(**({"name": rule} if rule else {}))
        if rule and not rules:
            raise CommandError(f"there is no rule {rule}")
        if not rules:
            self.stdout.write("There are no retention rules; an operator adds them in the admin.")
        for found in rules:
            self._show(found, remove=apply and found.active)
        if apply:
            self.stdout.write(f"{remove_due()} folders deleted on this host; other hosts delete theirs.")

    def _show(self, rule: RetentionRule, *, remove: bool) -> None:
        found = retention.apply(rule, by=None) if remove else retention.removals(rule)
        total = gigabytes(sum(removal.size for removal in found))
        state = "" if rule.active else " (inactive: it removes nothing)"
        verb, what = "removed" if remove else "would remove", rule.get_removes_display().lower()
        self.stdout.write(f"{rule}{state}: {verb} {what} of {len(found)} jobs, {total}")
        for line in table(found):
            self.stdout.write(line)


def table(found: list[retention.Removal]) -> list[str]:
    """Return one line per removal beneath a heading; nothing when there is none."""
    lines = [
        ROW.format(
            str(removal.job),
            removal.job.owner.get_username(),
            f"{removal.job.finished_at:%Y-%m-%d %H:%M}" if removal.job.finished_at else "",
            removal.host or "-",
            gigabytes(removal.size),
        )
        for removal in found
    ]
    return [ROW.format(*HEADINGS), *lines] if lines else []
