"""The table of faults: ``python -m tests.e2e.fault_table`` runs each on both databases and prints what happened."""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).with_name("faults")


def main() -> int:
    """Run the tests of all faults; return pytest's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "faults.xml"
        status = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", FOLDER, "-o", "junit_family=xunit1", f"--junitxml={report}"]
        ).returncode
        print(table(ElementTree.parse(report)))
    return status


def table(report: ElementTree.ElementTree) -> str:
    """Return a line for each fault and test: what is expected, and what happened on each database."""
    rows: dict[tuple[int, str], dict[str, str]] = defaultdict(dict)
    for case in report.iter("testcase"):
        name, _, parameters = case.get("name", "").partition("[")
        told = {found.get("name"): found.get("value") or "" for found in case.iter("property")}
        failed = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
        text = "NOT AS EXPECTED" if failed else f"{told.get('happened', '')} ({float(case.get('time', 0)):.0f} s)"
        database, _, variant = parameters.rstrip("]").partition("-")
        expected = name.removeprefix("test_").replace("_", " ") + (f" ({variant})" if variant else "")
        rows[int(told.get("fault", 0)), expected][database] = text
    lines = ["| # | expected | SQLite | PostgreSQL |", "|---|---|---|---|"]
    for (number, expected), found in sorted(rows.items()):
        lines.append(f"| {number} | {expected} | {found.get('sqlite', '')} | {found.get('postgres', '')} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
