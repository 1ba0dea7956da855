"""The drills, a file of tests each, and their page: what each did last, when, on which commit and machine."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakehouse import run, verbs
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.report import junit
from lakehouse.report.model import Case, Status
from plugins.module_utils.lakehouse.nearest import did_you_mean

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
when the file has run. `make drills DRILLS="scale kills"` runs some of them, `make drills DRILLS=due` those
that have a test without a row that says `passed`, or that was changed since: the last column is a digest of
it.
"""
# Stands for the drills that have to run again.
DUE = "due"
_HEAD = ["| Drill | Result | Took | Run | Commit | Measured | Test |", "|---|---|---|---|---|---|---|"]


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

    @property
    def tests(self) -> dict[str, str]:
        """The tests that are left to `make drills`, each with a digest of its source."""
        return long_tests(self.path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Row:
    """The last result of a test, in the order of the page's columns."""

    drill: str
    result: str
    duration: str
    day: str
    commit: str
    measured: str
    test: str

    def __str__(self) -> str:
        return f"| {' | '.join(astuple(self))} |"

    @property
    def function(self) -> str:
        """The name of the test, without its seed or host."""
        return f"test_{re.sub(r' [(].*', '', self.drill).replace(' ', '_')}"


def long_tests(source: str) -> dict[str, str]:
    """Return the tests of a file that have the mark, each with a digest of its source."""
    body, lines = ast.parse(source).body, source.splitlines()
    module_marked = _is_marked(
        node for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    )
    digests = {}
    for node in body:
        class_marked = isinstance(node, ast.ClassDef) and _is_marked(node.decorator_list)
        for function in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                text = "\n".join(lines[function.lineno - 1 : function.end_lineno])
                if module_marked or class_marked or _is_marked(function.decorator_list):
                    digests[function.name] = hashlib.sha256(text.encode()).hexdigest()[:8]
    return digests


def _is_marked(marks: Iterable[ast.AST]) -> bool:
    return any(f"pytest.mark.{verbs.LONG}" in ast.unparse(mark) for mark in marks)


def known() -> list[Drill]:
    """Return every drill, in the order of a whole run."""
    return [
        Drill(where, path.stem.removeprefix("test_"))
        for where, folder in _FOLDERS.items()
        for path in sorted((_TESTS / folder).glob("test_*.py"))
        if long_tests(path.read_text(encoding="utf-8"))
    ]


def named(names: Collection[str]) -> list[Drill]:
    """Return the drills of these names, or all; UsageError for an unknown name."""
    every = known()
    if list(names) == [DUE]:
        late = due()
        return [drill for drill in every if drill in late]
    for name in names:
        if all(drill.name != name for drill in every):
            raise UsageError(
                f"no drill is called {name}{did_you_mean(name, [drill.name for drill in every])}",
                f"ls {' '.join(f'tests/{folder}' for folder in _FOLDERS.values())}",
            )
    return [drill for drill in every if not names or drill.name in names]


def due(page: Path = PAGE) -> dict[Drill, list[str]]:
    """Return the tests without a current pass, by drill: never run, failed, or changed since."""
    rows = _rows(page)
    late = {}
    for drill in known():
        passed = {
            test
            for test, digest in drill.tests.items()
            if (test_rows := [row for row in rows.get(drill.title, ()) if row.function == test])
            and all((row.result, row.test) == (Status.PASSED, digest) for row in test_rows)
        }
        if missing := sorted(set(drill.tests) - passed):
            late[drill] = missing
    return late


@dataclass(frozen=True)
class Run:
    """When drills run: the day, the commit, and the machine."""

    day: str
    commit: str
    machine: str


def circumstances() -> Run:
    """Return day, commit and machine; LakehouseError if git has no commit."""
    output = {}
    for name, command in {
        "commit": "rev-parse --short HEAD",
        # The page itself is written while the drills run.
        "changes": f"status --porcelain -- . :!{PAGE.relative_to(run.ROOT)}",
    }.items():
        process = subprocess.run(
            ["git", *command.split()], cwd=run.ROOT, capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise LakehouseError(f"git knows no commit here: {process.stderr.strip()}", "git status")
        output[name] = process.stdout.strip()
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = f"{output['commit']}{' with changes' if output['changes'] else ''}"
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}, {system}"
    return Run(f"{datetime.now(UTC):%Y-%m-%d}", commit, machine)


def record(drill: Drill, when: Run, page: Path = PAGE) -> None:
    """Write the results of a drill's tests to the page; rows of other existing tests stay.

    LakehouseError if the drill has no results.
    """
    recorded_rows, drills = _rows(page), {drill.title: drill for drill in known()}
    fresh = [_row(drill, when, case) for case in junit.read(drill.results).cases]
    repeated = {row.function for row in fresh}
    earlier = [row for row in recorded_rows.get(drill.title, ()) if row.function not in repeated]
    recorded_rows[drill.title] = [*earlier, *fresh]
    machines = _machines(page) | {drill.title: when.machine}
    texts = [
        "\n".join([f"## {title}", "", f"{machines[title]}.", "", *_HEAD, *map(str, rows), ""])
        for title, each_drill in drills.items()
        if (rows := [row for row in recorded_rows.get(title, ()) if row.function in each_drill.tests])
    ]
    page.write_text("\n".join([_INTRODUCTION, *texts]), encoding="utf-8")


def _rows(page: Path) -> dict[str, list[Row]]:
    """Return the rows below each heading of the page."""
    rows: dict[str, list[Row]] = {}
    for title, text in _sections(page).items():
        cells = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
        rows[title] = [Row(*values) for values in cells[1:]]
    return rows


def _machines(page: Path) -> dict[str, str]:
    """Return on what each section of the page has run last."""
    return {title: text.partition("\n")[0].rstrip(".") for title, text in _sections(page).items()}


def _sections(page: Path) -> dict[str, str]:
    """Return the text below each heading of the page."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    parts = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
    return {title: body.strip() for title, _, body in parts}


def _row(drill: Drill, when: Run, case: Case) -> Row:
    name, bracket, parameter = case.name.rstrip("]").partition("[")
    label = name.removeprefix("test_").replace("_", " ") + (f" ({parameter})" if bracket else "")
    cells = (
        label, case.status, f"{case.seconds:.0f} s", when.day, when.commit, case.refusal or "-",
        drill.tests.get(name, "-"),
    )  # fmt: skip
    return Row(*(cell.replace("|", "/") for cell in cells))
