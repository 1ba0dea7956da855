"""Format a diagnosis as lines and JSON. Pure."""

from __future__ import annotations

from typing import Any

from lakehouse import outcome
from lakehouse.doctor.diagnosis import Diagnosis
from lakehouse.outcome import Outcome, Result
from lakehouse.status.model import Status
from lakehouse.validation.finding import Finding, Level
from plugins.module_utils.lakehouse.counting import counted

VERB = "doctor"
_OUTCOMES = {Level.FAULT: Outcome.DOWN, Level.WARNING: Outcome.DEGRADED}


def result(status: Status, diagnosis: Diagnosis, seconds: float) -> Result:
    """Return the result of the verb, with its last line, exit code and JSON."""
    return Result(
        verb=VERB,
        target=status.cluster,
        findings=tuple(map(_finding, diagnosis.findings)),
        facts=(f"{diagnosis.judged} of {counted(diagnosis.cases, 'check')} judged", f"{seconds:.1f} s"),
        hosts={
            machine.name: {"answered": machine.answer.known, "why": machine.answer.why}
            for machine in status.machines
        },
        healthy_next=f"make smoke INVENTORY={status.inventory}",
        details=_details(status, diagnosis, seconds),
        summary=", ".join(
            (_many(diagnosis, Level.FAULT, "error"), _many(diagnosis, Level.WARNING, "warning"))
        ),
    )


def screen(diagnosis: Diagnosis, ending: Result) -> str:
    """Return a line per finding, the gravest first, and the last line."""
    findings = sorted(diagnosis.findings, key=lambda finding: -_OUTCOMES[finding.level])
    return "\n".join([*map(str, findings), ending.last_line])


def _finding(finding: Finding) -> outcome.Finding:
    expected = f" (expected {finding.expected})" if finding.expected else ""
    advice = f"; {finding.person}" if finding.person else ""
    text = f"{finding.fact}{expected}{advice}"
    return outcome.Finding(finding.check, _OUTCOMES[finding.level], finding.host, text, finding.action)


def _details(status: Status, diagnosis: Diagnosis, seconds: float) -> dict[str, Any]:
    return {
        "inventory": status.inventory,
        "checks": {"judged": diagnosis.judged, "of": diagnosis.cases},
        "seconds": round(seconds, 1),
    }


def _many(diagnosis: Diagnosis, level: Level, noun: str) -> str:
    count = diagnosis.count(level)
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
