"""What the matrix suite proved: declared cells, the answers of TPC-H, and proofs that go across engines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.report import matrix
from lakehouse.report.matrix import Matrix
from lakehouse.report.model import Case, Status

SUITE = "matrix"
QUERY = "TPC-H q"
# What a proof says instead of an engine when it is about all of them at once.
TOGETHER = "all"
# How a cell that went as declared is shown: a mark and a word, for colour is never the only sign.
MARKS = {"works": "✓", "refused": "✕", "wrong": "!", "absent": "·"}
WORDS = {
    "works": "works",
    "refused": "refused, as declared",
    "wrong": "wrong answer, as declared",
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
    def bad(self) -> int:
        """How many tests of any kind did not go as they had to."""
        kinds = (self.cells, self.answers, self.proofs)
        return sum(case.status.bad for kind in kinds for cell in kind.cells for case in cell.cases)

    def __bool__(self) -> bool:
        """Whether the suite has run."""
        return any(each.cells for each in (self.cells, self.answers, self.proofs))


def apart(cases: Iterable[Case]) -> list[Case]:
    """Return the tests of the other suites."""
    return [case for case in cases if case.suite != SUITE]


def arrange(cases: Iterable[Case]) -> Engines:
    """Sort the tests of the suite into their kinds."""
    ours = [case for case in cases if case.suite == SUITE]
    declared = [case for case in ours if case.expected]
    rest = [case for case in ours if not case.expected]
    answers = [case for case in rest if case.operation.startswith(QUERY)]
    proofs = [case for case in rest if not case.operation.startswith(QUERY)]
    return Engines(*(matrix.arrange(each) for each in (declared, answers, proofs)))


def look(case: Case) -> str:
    """Return how a declared cell is shown: as declared, or skipped, or failed when it went otherwise."""
    if case.status.bad:
        return "failed"
    if case.status is Status.SKIPPED and case.expected != "absent":
        return "skipped"
    return case.expected


def counts(cells: Iterable[matrix.Cell]) -> dict[str, int]:
    """Return how many cells look like what, in the order of `MARKS`; what there is none of is left out."""
    looks = [look(case) for cell in cells for case in cell.cases]
    return {name: looks.count(name) for name in (*MARKS, "skipped", "failed") if name in looks}
