"""The contents of a report, and whether the run has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lakehouse.phases import PASSED, Phase
from lakehouse.report.cluster import Cluster
from lakehouse.report.tables import Table

# What a test says when it is about no table format, or about no engine.
NONE = "-"


class Status(StrEnum):
    """How a test ended; a later one is worse."""

    SKIPPED = "skipped"
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"

    @property
    def bad(self) -> bool:
        """Whether it fails the run."""
        return self in {Status.FAILED, Status.ERROR}

    @property
    def severity(self) -> int:
        """A number that grows as things get worse."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Case:
    """A test: its operation, engine, table format and result.

    `statement` is the executed text (empty: unknown); `message` and `evidence` explain a failure.
    A cell of the matrix, or the proof of a limit, has an `expected` result; `refusal` is the engine's error
    message, and `limit` the address of its explanation. Where the kit disables an operation, `behind` is the
    engine's own result.
    """

    suite: str
    name: str
    engine: str
    format: str
    operation: str
    status: Status
    seconds: float
    statement: str = ""
    message: str = ""
    evidence: str = ""
    expected: str = ""
    refusal: str = ""
    limit: str = ""
    behind: str = ""

    @property
    def absent(self) -> bool:
        """Whether there was nothing to execute, which is no test that was skipped."""
        return self.status is Status.SKIPPED and self.expected == "absent"


@dataclass(frozen=True)
class Report:
    """Everything that is known about one run."""

    cluster: Cluster
    versions: Mapping[str, str]
    phases: tuple[Phase, ...]
    cases: tuple[Case, ...]
    tables: tuple[Table, ...]
    generated: datetime

    @property
    def problems(self) -> tuple[str, ...]:
        """Return a line for each problem that fails the verification."""
        # The last result of a repeated phase counts.
        statuses = {phase.name: phase.status for phase in self.phases}
        problems = [f"phase {name} {status}" for name, status in statuses.items() if status != PASSED]
        if not any(case.status is not Status.SKIPPED for case in self.cases):
            problems.append("no test has run")
        problems += [f"{case.name} {_ended(case)}" for case in self.cases if case.status.bad]
        if not self.tables:
            problems.append("no table's replicas were counted")
        problems += [f"table {table.name}: {table.shortage}" for table in self.tables if table.shortage]
        return tuple(problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings that ended no phase, each line once."""
        return tuple(dict.fromkeys(line for phase in self.phases for line in phase.warnings))

    @property
    def passed(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def count(self, status: Status) -> int:
        """How many tests ended like this; what is absent is none of them."""
        return sum(case.status is status and not case.absent for case in self.cases)

    @property
    def absent(self) -> int:
        """How many cells have nothing to execute."""
        return sum(case.absent for case in self.cases)


def _ended(case: Case) -> str:
    reason = case.message.strip().partition("\n")[0]
    word = "failed" if case.status is Status.FAILED else "broke"
    return f"{word}: {reason}" if reason else word
