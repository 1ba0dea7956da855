"""What a check found, as one line a person can act on."""

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
    return [found for found in findings if found.level is level]


def collapse(findings: Iterable[Finding], hosts: Collection[str]) -> list[Finding]:
    """Say once what is the same on several hosts; ``all`` stands for every one of ``hosts``.

    A fault in a group's variables is seen on each host of the group, but it is one fault.
    """
    places: dict[Finding, list[str]] = {}
    for found in findings:
        seen = places.setdefault(replace(found, host=""), [])
        if found.host not in seen:
            seen.append(found.host)
    return [
        replace(found, host="all" if set(seen) == set(hosts) else ",".join(seen))
        for found, seen in places.items()
    ]
