"""The drills, a file of tests each, and their page: what each did last, when, on which commit and machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakehouse import run
from lakehouse.errors import LakehouseError
from lakehouse.nearest import did_you_mean
from lakehouse.report import junit
from lakehouse.report.model import Case

# Marks what `make drills` runs and `make test` leaves out.
MARK = "longdrill"
# Where drills run, and the folders that hold them, in the order of a run.
CONTROL, NODES, COMPOSE = "control machine", "nodes", "compose"
_FOLDERS = {CONTROL: "unit", NODES: "cluster", COMPOSE: "compose"}
_TESTS = run.ROOT / "tests"
_RESULTS = run.BUILD / "drills"
PAGE = run.ROOT / "docs" / "drills.md"
_INTRODUCTION = """\
# Drills

`make drills` runs what takes minutes or takes everything apart, on nodes and containers of its own: the
tests with the marker `longdrill`. `make test` runs all others. Each file of tests has a section here, written
when the file has run. `make drills DRILLS="scale kills"` runs some of them; the other sections stay.
"""


@dataclass(frozen=True)
class Drill:
    """A file of tests: where it runs, and its name without `test_`."""

    where: str
    name: str

    @property
    def path(self) -> Path:
        """The file."""
        return _TESTS / _FOLDERS[self.where] / f"test_{self.name}.py"

    @property
    def results(self) -> Path:
        """Where pytest writes what its last run did."""
        return _RESULTS / f"{self.where} {self.name}-junit.xml"

    @property
    def title(self) -> str:
        """The heading of its section."""
        return f"{self.name.replace('_', ' ')}, on {self.where}"


def known() -> list[Drill]:
    """Return every drill, in the order of a whole run."""
    return [
        Drill(where, path.stem.removeprefix("test_"))
        for where, folder in _FOLDERS.items()
        for path in sorted((_TESTS / folder).glob("test_*.py"))
        if f"mark.{MARK}" in path.read_text(encoding="utf-8")
    ]


def named(names: Collection[str]) -> list[Drill]:
    """Return the drills of these names, or all; LakehouseError for a name that none has."""
    every = known()
    for name in names:
        if all(drill.name != name for drill in every):
            raise LakehouseError(
                f"no drill is called {name}{did_you_mean(name, [drill.name for drill in every])}",
                f"ls {' '.join(f'tests/{folder}' for folder in _FOLDERS.values())}",
            )
    return [drill for drill in every if not names or drill.name in names]


def circumstances() -> str:
    """Return day, commit and machine; LakehouseError where git knows no commit."""
    said = {}
    for name, command in {
        "commit": "rev-parse --short HEAD",
        # The page itself is written while the drills run.
        "changes": f"status --porcelain -- . :!{PAGE.relative_to(run.ROOT)}",
    }.items():
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


def record(drill: Drill, when: str, page: Path = PAGE) -> None:
    """Write the section of a drill that has run; what the others did stays, of drills that there are.

    LakehouseError where the drill has left no results.
    """
    sections = _sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    sections[drill.title] = _section(when, junit.read(drill.results).cases)
    texts = [f"## {one.title}\n{sections[one.title]}" for one in known() if one.title in sections]
    page.write_text("\n".join([_INTRODUCTION, *texts]), encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    """Return what stands below each heading of the page."""
    parts = (part.partition("\n") for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:])
    return {title: f"{text.rstrip()}\n" for title, _, text in parts}


def _section(when: str, cases: Collection[Case]) -> str:
    rows = [
        f"| {_called(case)} | {case.status} | {case.seconds:.0f} s | {case.said or '-'} |" for case in cases
    ]
    head = ["| Drill | Result | Took | Measured |", "|---|---|---|---|"]
    return "\n".join(["", f"{when}.", "", *head, *rows, ""])


def _called(case: Case) -> str:
    """Return what the drill is, with its seed or host."""
    _, bracket, parameter = case.name.rstrip("]").partition("[")
    return f"{case.operation} ({parameter})" if bracket else case.operation
