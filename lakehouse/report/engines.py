"""What the matrix suite proved: declared cells, the answers of TPC-H, and proofs that go across engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakehouse.report import matrix
from lakehouse.report.matrix import Matrix
from lakehouse.report.model import Case, Status

SUITE = "matrix"
# The test of a declared cell, by its name; any other test of the suite is a proof.
CELL = "test_cell["
QUERY = "TPC-H q"
# What a proof says instead of an engine when it is about all of them at once.
TOGETHER = "all"
# How what went as declared is shown: a mark and a word, for colour is never the only sign.
MARKS = {"works": "✓", "wrong": "!", "refused": "✕", "withheld": "○", "absent": "·"}
# What says most about a cell with several tests comes last.
_LOOKS = ("skipped", "absent", "works", "withheld", "refused", "wrong", "failed")
WORDS = {
    "works": "works",
    "refused": "refused, as declared",
    "wrong": "wrong answer, as declared",
    "withheld": "withheld by the kit",
    "absent": "no such thing",
    "skipped": "not run",
}


@dataclass(frozen=True)
class Engines:
    """The suite's tests by kind; each kind may be empty."""

    cells: Matrix
    answers: Matrix
    proofs: Matrix

    @property
    def strangers(self) -> tuple[tuple[str, str], ...]:
        """Engines and formats that have nothing to do with each other: no operation of them exists."""
        met = {cell.row for cell in self.cells.cells if any(look(case) != "absent" for case in cell.cases)}
        return tuple(row for row in self.cells.rows if row not in met)

    @property
    def shared(self) -> tuple[tuple[str, str], ...]:
        """Proofs that several engines went through, by operation and format."""
        met: dict[tuple[str, str], set[str]] = {}
        for cell in self.proofs.cells:
            met.setdefault((cell.operation, cell.format), set()).add(cell.engine)
        return tuple(key for key, names in met.items() if len(names - {TOGETHER}) > 1)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells look like what: the same in each part of the report, and without the limits."""
        return counts(self.cells.cells)

    @property
    def limits(self) -> int:
        """How many proofs across engines expect a limit."""
        return limits(self.proofs.cells)

    @property
    def proven(self) -> int:
        """How many proofs there are beside those of a limit."""
        return unlimited(self.proofs.cells)

    @property
    def bad(self) -> int:
        """The number of failed tests of any kind."""
        kinds = (self.cells, self.answers, self.proofs)
        return sum(case.status.bad for kind in kinds for cell in kind.cells for case in cell.cases)

    def __bool__(self) -> bool:
        """Whether the suite has run."""
        return any(kind.cells for kind in (self.cells, self.answers, self.proofs))


def apart(cases: Iterable[Case]) -> list[Case]:
    """Return the tests of the other suites."""
    return [case for case in cases if case.suite != SUITE]


def arrange(cases: Iterable[Case]) -> Engines:
    """Sort the tests of the suite into their kinds."""
    suite_cases = [case for case in cases if case.suite == SUITE]
    declared = [case for case in suite_cases if case.name.startswith(CELL)]
    undeclared = [case for case in suite_cases if not case.name.startswith(CELL)]
    answers = [case for case in undeclared if case.operation.startswith(QUERY)]
    proofs = [case for case in undeclared if not case.operation.startswith(QUERY)]
    return Engines(*(matrix.arrange(kind_cases) for kind_cases in (declared, answers, proofs)))


def look(case: Case) -> str:
    """Return how a test is shown: as declared, or skipped, or failed when it went otherwise."""
    if case.status.bad:
        return "failed"
    if case.status is Status.SKIPPED and not case.absent:
        return "skipped"
    return case.expected or "works"


def shown(cell: matrix.Cell) -> str:
    """Return how a cell is shown: like the test that says most."""
    return max(map(look, cell.cases), key=_LOOKS.index)


def counts(cells: Iterable[matrix.Cell]) -> dict[str, int]:
    """Return how many declared tests look like what, in the order of `MARKS`; none are left out."""
    looks = [look(case) for cell in cells for case in cell.cases if case.expected]
    return {name: looks.count(name) for name in (*MARKS, "skipped", "failed") if name in looks}


def limits(proofs: Iterable[matrix.Cell]) -> int:
    """Return how many proofs expect a limit."""
    return sum(bool(case.expected) for cell in proofs for case in cell.cases)


def unlimited(tests: Iterable[matrix.Cell]) -> int:
    """Return how many proofs or queries expect no limit."""
    return sum(not case.expected for cell in tests for case in cell.cases)


def line(looks: Mapping[str, int]) -> str:
    """Return counts in one line.

    >>> line({"works": 3, "absent": 1})
    'the matrix: 3 works, 1 absent'
    """
    return "the matrix: " + ", ".join(f"{count} {name}" for name, count in looks.items())
