"""All checks, and the diagnosis that they make of a snapshot. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakehouse.doctor import (
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
from lakehouse.doctor.model import Case, Check, Snapshot, runs
from lakehouse.status import judge
from lakehouse.validation.finding import Finding, Level

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
# The check of findings about unknown answers.
UNJUDGED = "doctor.unjudged"
PERSON = "correct what keeps it from its answer"
_NAMED = 3


@dataclass(frozen=True)
class Diagnosis:
    """The findings, including unknown answers, and the numbers of judged and of all cases."""

    findings: tuple[Finding, ...]
    judged: int
    cases: int

    def count(self, level: Level) -> int:
        """Return the number of findings of a level."""
        return sum(finding.level is level for finding in self.findings)


def diagnose(snapshot: Snapshot, checks: Sequence[Check] = CHECKS) -> Diagnosis:
    """Judge all cases of all checks."""
    cases = [(check, case) for check in checks for case in check.cases(snapshot)]
    findings = [
        Finding(check.name, case.host, fault.fact, fault.action, fault.expected, fault.level, check.person)
        for check, case in cases
        for fault in case.faults.value or ()
    ]
    unjudged = [(check.name, case) for check, case in cases if not case.faults.known]
    return Diagnosis((*findings, *_unjudged(snapshot, unjudged)), len(cases) - len(unjudged), len(cases))


def _unjudged(snapshot: Snapshot, cases: Sequence[tuple[str, Case]]) -> Iterator[Finding]:
    """Yield a finding per host with unknown answers, except those of stopped services, which units report."""
    unknown_by_host: dict[str, dict[str, Case]] = {}
    for name, case in cases:
        service = case.service
        if not (service and service.state.known and not runs(service)):
            unknown_by_host.setdefault(service.host if service else case.host, {}).setdefault(name, case)
    for host, host_cases in unknown_by_host.items():
        names = list(host_cases)
        suffix = f" and {len(names) - _NAMED} more" if names[_NAMED:] else ""
        first = host_cases[names[0]]
        fact = f"{', '.join(names[:_NAMED])}{suffix} not judged: {first.faults.why}"
        yield Finding(UNJUDGED, host, fact, _next_command(snapshot, host, first), "an answer", person=PERSON)


def _next_command(snapshot: Snapshot, host: str, case: Case) -> str:
    """Return the next command: a ping of a silent host, else the journal of the service or of the host."""
    machines = {machine.name: machine.answer.known for machine in snapshot.status.machines}
    if not machines.get(host, False):
        return judge.ping(snapshot.status, host)
    if case.service:
        return snapshot.journal(case.service)
    return snapshot.on(host, "journalctl --priority warning -n 50 --no-pager")
