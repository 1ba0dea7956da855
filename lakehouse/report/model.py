"""What a report is about, and whether it is good news."""

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
        """Whether it spoils the result."""
        return self in {Status.FAILED, Status.ERROR}

    @property
    def severity(self) -> int:
        """A number that grows as things get worse."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Case:
    """One test: what it did with which engine and table format, and how that ended.

    `statement` is what was run (empty: unknown); `message` and `evidence` say why it did not pass.
    A cell of the matrix, or the proof of a limit, was `expected` to end in a certain way; `said` are the
    engine's words when it refused, and `limit` is the address of what explains that. Where the kit withholds
    something, `behind` is what the engine itself does.
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
    said: str = ""
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
        """One line for everything that keeps this from being a verified lakehouse."""
        # A phase that was run again counts as it went the last time.
        last = {phase.name: phase.status for phase in self.phases}
        found = [f"phase {name} {status}" for name, status in last.items() if status != PASSED]
        if not any(case.status is not Status.SKIPPED for case in self.cases):
            found.append("no test has run")
        found += [f"{case.name} {_ended(case)}" for case in self.cases if case.status.bad]
        if not self.tables:
            found.append("no table's replicas were counted")
        found += [f"table {table.name}: {table.shortage}" for table in self.tables if table.shortage]
        return tuple(found)

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
