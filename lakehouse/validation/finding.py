"""What a check found, as one line a person can act on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One fault: its ``check`` (``area.check``), where it is, what was seen and expected, and what to do."""

    check: str
    host: str
    fact: str
    action: str
    expected: str = ""

    def __str__(self) -> str:
        """Return the one line that people and logs see."""
        expected = f" (expected {self.expected})" if self.expected else ""
        return f"FAIL {self.check} {self.host}: {self.fact}{expected}: {self.action}"


def report(findings: Collection[Finding]) -> str:
    """Return all findings, a line each, below a line that counts them."""
    return "\n".join([f"findings: {len(findings)}", *map(str, findings)])


def collapse(findings: Iterable[Finding], hosts: Collection[str]) -> list[Finding]:
    """Say once what is the same on several hosts; ``all`` stands for every one of ``hosts``.

    A fault in a group's variables is seen on each host of the group, but it is one fault.
    """
    places: dict[tuple[str, str, str, str], list[str]] = {}
    for found in findings:
        seen = places.setdefault((found.check, found.fact, found.action, found.expected), [])
        if found.host not in seen:
            seen.append(found.host)
    return [
        Finding(check, "all" if set(seen) == set(hosts) else ",".join(seen), fact, action, expected)
        for (check, fact, action, expected), seen in places.items()
    ]
