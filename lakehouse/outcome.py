"""The result of a command that does not change the cluster: last line, exit code and JSON, from findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from lakehouse.terminal import printable

SCHEMA = 1


class Outcome(IntEnum):
    """The outcome of a reading command, or of `exec` and `sql`, with its exit code.

    An unknown state is DOWN; LIMIT is a timeout. Changing commands have `lakehouse.rolling.result.Ending`.
    """

    OK = 0
    DEGRADED = 1
    DOWN = 2
    LIMIT = 124


@dataclass(frozen=True)
class Finding:
    """One fault: its stable `code` (`area.fault`), outcome, place, description and next command."""

    code: str
    outcome: Outcome
    where: str
    fact: str
    next: str

    def __str__(self) -> str:
        return printable(f"{self.outcome.name} {self.code} {self.where}: {self.fact}; next: {self.next}")


@dataclass(frozen=True)
class Result:
    """The result of a verb: `facts` are for its last line, `hosts` and `details` for programs."""

    verb: str
    target: str
    findings: tuple[Finding, ...]
    facts: tuple[str, ...]
    hosts: Mapping[str, Any]
    healthy_next: str
    details: Mapping[str, Any] = field(default_factory=dict)
    # Replaces the outcome in the last line.
    summary: str = ""

    @property
    def worst(self) -> tuple[Finding, ...]:
        """The findings, the gravest first, and otherwise in order."""
        return tuple(sorted(self.findings, key=lambda finding: -finding.outcome))

    @property
    def outcome(self) -> Outcome:
        """The outcome of the gravest finding."""
        return self.worst[0].outcome if self.findings else Outcome.OK

    @property
    def next(self) -> str:
        """The next command."""
        return self.worst[0].next if self.findings else self.healthy_next

    @property
    def last_line(self) -> str:
        """Such as `status lakehouse: OK; 3 of 3 hosts answered; next: make smoke`."""
        summary = self.summary or self.outcome.name
        return printable(f"{self.verb} {self.target}: {summary}; {', '.join(self.facts)}; next: {self.next}")

    def json(self) -> dict[str, Any]:
        """Return the result for programs."""
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
                    "what": finding.fact,
                    "next": finding.next,
                }
                for finding in self.worst
            ],
            "next": self.next,
            **self.details,
        }
