"""How a verb that looks ends: its last line, exit code and JSON, all of them made of the findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from lakehouse.terminal import printable

SCHEMA = 1


class Outcome(IntEnum):
    """What a verb that looks, or runs what a person gives it, has found; and its exit code.

    DOWN is also what could not be found to be otherwise; LIMIT is what was ended by the time that it was
    given. How a verb that changes has ended is an `ops.change.result.Ending`.
    """

    OK = 0
    DEGRADED = 1
    DOWN = 2
    LIMIT = 124


@dataclass(frozen=True)
class Finding:
    """One fault: its stable `code` (`area.fault`), what the cluster is by it, where, what, what to run."""

    code: str
    outcome: Outcome
    where: str
    what: str
    next: str

    def __str__(self) -> str:
        return printable(f"{self.outcome.name} {self.code} {self.where}: {self.what}; next: {self.next}")


@dataclass(frozen=True)
class Result:
    """What a verb has to say: `facts` are for its last line, `hosts` and `details` for programs."""

    verb: str
    target: str
    findings: tuple[Finding, ...]
    facts: tuple[str, ...]
    hosts: Mapping[str, Any]
    healthy_next: str
    details: Mapping[str, Any] = field(default_factory=dict)
    # What the last line says in place of the outcome's word.
    summary: str = ""

    @property
    def worst(self) -> tuple[Finding, ...]:
        """The findings, the gravest first, and otherwise as they were found."""
        return tuple(sorted(self.findings, key=lambda finding: -finding.outcome))

    @property
    def outcome(self) -> Outcome:
        """That of the gravest finding."""
        return self.worst[0].outcome if self.findings else Outcome.OK

    @property
    def next(self) -> str:
        """The one command to run now."""
        return self.worst[0].next if self.findings else self.healthy_next

    @property
    def last_line(self) -> str:
        """Such as `status lakehouse: OK; 3 of 3 hosts answered; next: make smoke`."""
        said = self.summary or self.outcome.name
        return printable(f"{self.verb} {self.target}: {said}; {', '.join(self.facts)}; next: {self.next}")

    def json(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "schema": SCHEMA,
            "verb": self.verb,
            "target": self.target,
            "outcome": self.outcome.name,
            "exit": int(self.outcome),
            "hosts": dict(self.hosts),
            "findings": [
                {
                    "code": finding.code,
                    "outcome": finding.outcome.name,
                    "where": finding.where,
                    "what": finding.what,
                    "next": finding.next,
                }
                for finding in self.worst
            ],
            "next": self.next,
            **self.details,
        }
