"""How a verb that changes a cluster ends: its last line, its exit code and its JSON, all of one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.terminal import printable
from ops.outcome import SCHEMA


class Ending(IntEnum):
    """Of a verb that changes, and its exit code. After 1, 3, 4 and 5 the cluster is as it was before."""

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
        """As people say it."""
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
class Ended:
    """What a verb has done, and the one command to run now; `run` is empty where none was begun."""

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
        """Everything, for programs."""
        wrong = self.ending is not Ending.DONE
        return {
            "schema": SCHEMA,
            "verb": self.verb,
            "target": self.target,
            "outcome": self.ending.name,
            "exit": int(self.ending),
            "run": self.run,
            "hosts": dict(self.hosts),
            "findings": [{"what": what, "next": self.next} for what in self.facts] if wrong else [],
            "facts": list(self.facts),
            "next": self.next,
            **self.details,
        }


@dataclass(frozen=True)
class Refusal:
    """Why nothing of a plan is done, and the ways out: it is said in place of the question."""

    fact: str
    next: str


class Stopped(Exception):  # noqa: N818 -- it is an ending, and not always an error
    """A run cannot go on: how it ends, what is said of it, and the command to run next."""

    def __init__(self, ending: Ending, fact: str, next_command: str) -> None:
        super().__init__(fact)
        self.ending = ending
        self.fact = fact
        self.next = next_command


def said(error: Stopped | LakehouseError) -> str:
    """Return why a step failed, in one line: of an error's several lines the last names the cause."""
    return error.fact if isinstance(error, Stopped) else error.message.splitlines()[-1]
