"""The page of the last `make drills`: what was taken apart, when, on which commit and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from lakehouse import run
from lakehouse.errors import LakehouseError
from lakehouse.report import junit
from lakehouse.report.model import Case

FOLDER = run.BUILD / "drills"
# What the name of a result file ends with; before it stands where the drills ran.
RESULTS = "-junit.xml"
PAGE = run.ROOT / "docs" / "drills.md"
_INTRODUCTION = """\
# Drills

`make drills` runs what takes minutes or takes everything apart, on nodes and containers of its own: the
tests with the marker `longdrill`. `make test` runs all others. It writes this page again.
"""


def page(cases: Iterable[Case], circumstances: str) -> str:
    """Return the page in Markdown: a row per drill, then what some have measured. Of no cases, it says so."""
    cases = sorted(cases, key=lambda case: (case.suite, case.operation))
    rows = [f"| {case.suite} | {case.operation} | {case.status} | {case.seconds:.0f} s |" for case in cases]
    notes = [f"- {case.operation}: {case.said}" for case in cases if case.said]
    if not rows:
        return f"{_INTRODUCTION}\nNobody has run all of them since they were put together.\n"
    head = ["| Where | Drill | Result | Took |", "|---|---|---|---|"]
    measured = ["", "What they have measured:", "", *notes] if notes else []
    return "\n".join([_INTRODUCTION, f"The last run: {circumstances}.", "", *head, *rows, *measured, ""])


def circumstances() -> str:
    """Return day, commit and machine; LakehouseError where git knows no commit."""
    said = {}
    for name, command in {"commit": "rev-parse --short HEAD", "changes": "status --porcelain"}.items():
        done = subprocess.run(
            ["git", *command.split()], cwd=run.ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LakehouseError(f"git knows no commit here: {done.stderr.strip()}", "git status")
        said[name] = done.stdout.strip()
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = f"{said['commit']}{' with changes' if said['changes'] else ''}"
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}, {system}"
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}, {machine}"


def write(folder: Path = FOLDER, target: Path = PAGE) -> None:
    """Write the page from the results in the folder; LakehouseError where there are none."""
    cases = [case for path in sorted(folder.glob(f"*{RESULTS}")) for case in junit.read(path).cases]
    if not cases:
        raise LakehouseError(f"{folder} holds no results: no drill has run", "make drills")
    target.write_text(page(cases, circumstances()), encoding="utf-8")
