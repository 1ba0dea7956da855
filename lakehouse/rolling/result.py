"""The result of a command that changes a cluster: its last line, exit code and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.outcome import SCHEMA
from lakehouse.terminal import printable


class Ending(IntEnum):
    """How a changing command ended, with its exit code. After 1, 3, 4 and 5 the cluster is unchanged."""

    DONE = 0
    FAILED = 1
    REFUSED = 3
    UNCONFIRMED = 4
    LOCKED = 5
    HALFWAY = 6
    BACK = 7
    INTERRUPTED = 130

    @property
    def word(self) -> str:
        """The ending in the last line."""
        return _WORDS[self]


_WORDS = {
    Ending.DONE: "done",
    Ending.FAILED: "failed",
    Ending.REFUSED: "refused",
    Ending.UNCONFIRMED: "not confirmed",
    Ending.LOCKED: "locked",
    Ending.HALFWAY: "stopped halfway",
    Ending.BACK: "went back",
    Ending.INTERRUPTED: "interrupted",
}


@dataclass(frozen=True)
class RunResult:
    """The result of a changing command, and the next command; `run` is empty where none was started."""

    verb: str
    target: str
    ending: Ending
    facts: tuple[str, ...]
    next: str
    run: str = ""
    hosts: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last_line(self) -> str:
        """Such as `restart datanode: done; 3 of 3 restarted, 41 s, run r17; next: lakehouse status`."""
        facts = ", ".join([*self.facts, *([f"run {self.run}"] if self.run else [])])
        return printable(f"{self.verb} {self.target}: {self.ending.word}; {facts}; next: {self.next}")

    def json(self) -> dict[str, Any]:
        """Return the result for programs."""
        failed = self.ending is not Ending.DONE
        return {
            "schema": SCHEMA,
            "verb": self.verb,
            "target": self.target,
            "outcome": self.ending.name,
            "exit": int(self.ending),
            "run": self.run,
            "hosts": dict(self.hosts),
            "findings": [{"what": fact, "next": self.next} for fact in self.facts] if failed else [],
            "facts": list(self.facts),
            "next": self.next,
            **self.details,
        }


@dataclass(frozen=True)
class Refusal:
    """Why a plan is refused, and the remedies; printed in place of the question."""

    fact: str
    next: str


class Stopped(Exception):  # noqa: N818 -- it is an ending, and not always an error
    """A run cannot continue: how it ends, why, and the next command."""

    def __init__(self, ending: Ending, fact: str, next_command: str) -> None:
        super().__init__(fact)
        self.ending = ending
        self.fact = fact
        self.next = next_command


def cause(error: Stopped | LakehouseError) -> str:
    """Return why a step failed: of an error with several lines the last one."""
    return error.fact if isinstance(error, Stopped) else error.message.splitlines()[-1]
