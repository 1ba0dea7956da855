"""The one error of what provisions: something is not as it must be, and nothing more was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RefusedError(Exception):
    """What is wrong and where, in one line; the next command; the end of a tool's output if there is some."""

    def __init__(self, what: str, next_command: str = "", log: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.next_command = next_command
        self.log = list(log)

    def __str__(self) -> str:
        return f"{self.what}; next: {self.next_command}" if self.next_command else self.what

    def result(self) -> dict[str, Any]:
        """Return what a module fails with."""
        return {"msg": str(self)} | ({"log": self.log} if self.log else {})


class UnansweredError(RefusedError):
    """A service that had to be asked is not there: what a run would do to it is not known."""


class DeniedError(UnansweredError):
    """A service is there and lets no user in: it is not an empty one."""
