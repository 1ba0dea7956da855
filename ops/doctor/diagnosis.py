"""All checks, and what they make of what was answered. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakehouse.validation.finding import Finding, Level
from ops.doctor import alike, backups, catalog, daemons, engines, history, machines, running, storage
from ops.doctor.model import Case, Check, Seen, runs
from ops.status import judge

CHECKS: tuple[Check, ...] = (
    *machines.CHECKS,
    *daemons.CHECKS,
    *storage.CHECKS,
    *catalog.CHECKS,
    *history.CHECKS,
    *backups.CHECKS,
    *engines.CHECKS,
    *alike.CHECKS,
    *running.CHECKS,
)
# The name of what could not be judged.
UNJUDGED = "doctor.unjudged"
_NAMED = 3


@dataclass(frozen=True)
class Diagnosis:
    """The findings, those what could not be judged among them, and how many cases were."""

    findings: tuple[Finding, ...]
    judged: int
    cases: int

    def count(self, level: Level) -> int:
        """Return how many findings are of a level."""
        return sum(finding.level is level for finding in self.findings)


def diagnose(seen: Seen, checks: Sequence[Check] = CHECKS) -> Diagnosis:
    """Judge every case of every check."""
    cases = [(check.name, case) for check in checks for case in check.cases(seen)]
    found = [
        Finding(name, case.host, fault.fact, fault.action, fault.expected, fault.level)
        for name, case in cases
        for fault in case.faults.value or ()
    ]
    unjudged = [(name, case) for name, case in cases if not case.faults.known]
    return Diagnosis((*found, *_unjudged(seen, unjudged)), len(cases) - len(unjudged), len(cases))


def _unjudged(seen: Seen, cases: Sequence[tuple[str, Case]]) -> Iterator[Finding]:
    """Give a line per host of which something is not known; of a service that is stopped its unit is said."""
    left: dict[str, dict[str, str]] = {}
    for name, case in cases:
        asked = case.asked
        if not (asked and asked.state.known and not runs(asked)):
            left.setdefault(asked.host if asked else case.host, {}).setdefault(name, case.faults.why)
    for host, checks in left.items():
        names = list(checks)
        more = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
        fact = f"{', '.join(names[:_NAMED])}{more} not judged: {checks[names[0]]}"
        yield Finding(UNJUDGED, host, fact, judge.ping(seen.status, host), "an answer")
