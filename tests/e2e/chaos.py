"""Storms by hand: ``python -m tests.e2e.chaos --seeds 1 2 3 --seconds 60 [--postgres]`` prints a table of what held."""

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
SHORT = {"NIGHTSHIFT_LEASE": "6", "NIGHTSHIFT_HEARTBEAT": "1", "NIGHTSHIFT_GRACE": "2", "LOG_LEVEL": "ERROR"}


def main(seeds: list[int], seconds: float, *, postgres: bool) -> int:
    """Run one storm per seed; return 1 when a rule was broken."""
    import django

    os.environ.update(SHORT)
    django.setup()
    from tests.e2e.storm import RULES

    print(
        "| seed | database | faults | attempts | outcomes | drained in | broken rules |\n|---|---|---|---|---|---|---|"
    )
    broken = 0
    for seed in seeds:
        report = storm(seed, seconds, postgres=postgres)
        faults = ", ".join(f"{count} {name}" for name, count in sorted(report.injected.items()))
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(report.outcomes.items()))
        held = f"none of {len(RULES)}" if not report.broken else str(report.broken)
        where = "PostgreSQL" if postgres else "SQLite"
        print(f"| {seed} | {where} | {report.injected.total()}: {faults} | {report.attempts} | {outcomes} "
              f"| {report.drained_in:.0f} s | {held} |", flush=True)  # fmt: skip
        broken += bool(report.broken)
    print(f"Rules: {'; '.join(RULES)}.")
    return int(broken > 0)


def storm(seed: int, seconds: float, *, postgres: bool):
    """Run one storm on an emptied state folder and a new database."""
    from django.conf import settings

    from tests.e2e.live_stack import SECONDS, TRAINER, LiveStack, pretended_gpus
    from tests.e2e.storm import weather

    home = Path(settings.NIGHTSHIFT_HOME)
    for path in home.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with _database(home, postgres=postgres) as server:
        stack = LiveStack(home, SECONDS | {"NIGHTSHIFT_TRAINER": str(TRAINER)}, pretended_gpus(3))
        report = weather(stack, seed, seconds, server)
        if report.broken and (kept := os.environ.get("NIGHTSHIFT_KEEP")):
            shutil.copytree(home, Path(kept) / f"seed-{seed}", dirs_exist_ok=True)
        return report


@contextlib.contextmanager
def _database(home: Path, *, postgres: bool) -> Iterator[object]:
    from tests.e2e.databases import postgres_database, sqlite_database
    from tests.e2e.postgres_server import PostgresServer

    if not postgres:
        with sqlite_database(home):
            yield None
    else:
        with PostgresServer() as server, postgres_database(server, home):
            yield server


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    sys.exit(main(options.seeds, options.seconds, postgres=options.postgres))
