"""The finding of a check: object, fact and next step in a line."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from lakehouse.terminal import printable


class Level(StrEnum):
    """What becomes of a run: it ends before anything changes, or goes on."""

    FAULT = "FAIL"
    WARNING = "WARN"


@dataclass(frozen=True)
class Finding:
    """One fault: its ``check`` (``area.check``), where it is, what was seen and expected, and what to do.

    ``action`` is a command; ``person`` is what a person has to do where no command is enough.
    """

    check: str
    host: str
    fact: str
    action: str
    expected: str = ""
    level: Level = Level.FAULT
    person: str = ""

    def __str__(self) -> str:
        """Return the one line that people and logs see."""
        expected = f" (expected {self.expected})" if self.expected else ""
        person = f"; {self.person}" if self.person else ""
        return printable(
            f"{self.level} {self.check} {self.host}: {self.fact}{expected}{person}: {self.action}"
        )


def report(findings: Collection[Finding]) -> str:
    """Return all findings, a line each, below a line that counts them."""
    return "\n".join([f"findings: {len(findings)}", *map(str, findings)])


def of_level(findings: Iterable[Finding], level: Level) -> list[Finding]:
    """Return the findings of a level alone."""
    return [finding for finding in findings if finding.level is level]


def collapse(findings: Iterable[Finding], hosts: Collection[str]) -> list[Finding]:
    """Merge equal findings of several hosts; ``all`` stands for every one of ``hosts``.

    A fault in a group's variables is a finding on each host of the group, but it is one fault.
    """
    places: dict[Finding, list[str]] = {}
    for finding in findings:
        affected_hosts = places.setdefault(replace(finding, host=""), [])
        if finding.host not in affected_hosts:
            affected_hosts.append(finding.host)
    return [
        replace(finding, host="all" if set(affected_hosts) == set(hosts) else ",".join(affected_hosts))
        for finding, affected_hosts in places.items()
    ]
