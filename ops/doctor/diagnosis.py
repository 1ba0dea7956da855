"""All checks, and what they make of what was answered. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakehouse.validation.finding import Finding, Level
from ops.doctor import (
    alike,
    backups,
    catalog,
    daemons,
    drift,
    engines,
    history,
    machines,
    running,
    storage,
)
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
    *drift.CHECKS,
    *running.CHECKS,
)
# The name of what could not be judged.
UNJUDGED = "doctor.unjudged"
PERSON = "correct what keeps it from its answer"
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
    cases = [(check, case) for check in checks for case in check.cases(seen)]
    found = [
        Finding(check.name, case.host, fault.fact, fault.action, fault.expected, fault.level, check.person)
        for check, case in cases
        for fault in case.faults.value or ()
    ]
    unjudged = [(check.name, case) for check, case in cases if not case.faults.known]
    return Diagnosis((*found, *_unjudged(seen, unjudged)), len(cases) - len(unjudged), len(cases))


def _unjudged(seen: Seen, cases: Sequence[tuple[str, Case]]) -> Iterator[Finding]:
    """Give a line per host of which something is not known; of a service that is stopped its unit is said."""
    left: dict[str, dict[str, Case]] = {}
    for name, case in cases:
        asked = case.asked
        if not (asked and asked.state.known and not runs(asked)):
            left.setdefault(asked.host if asked else case.host, {}).setdefault(name, case)
    for host, unknown in left.items():
        names = list(unknown)
        more = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
        first = unknown[names[0]]
        fact = f"{', '.join(names[:_NAMED])}{more} not judged: {first.faults.why}"
        yield Finding(UNJUDGED, host, fact, _following(seen, host, first), "an answer", person=PERSON)


def _following(seen: Seen, host: str, case: Case) -> str:
    """Return what to look at: the way to a silent host, else what a service or the host has logged."""
    machines = {machine.name: machine.answer.known for machine in seen.status.machines}
    if not machines.get(host, False):
        return judge.ping(seen.status, host)
    if case.asked:
        return seen.journal(case.asked)
    return seen.on(host, "journalctl --priority warning -n 50 --no-pager")
