"""A value that may be unknown, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

T = TypeVar("T")
S = TypeVar("S")
_SHOWN = 300
# Errors of parsing an answer of an unexpected form.
_UNREADABLE = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, StopIteration
)  # fmt: skip
R = TypeVar("R")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A value, or unknown and `why`. Unknown is never read as empty, as zero or as good."""

    value: T | None
    why: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return not self.why

    def then(self, read: Callable[[T], S]) -> Answer[S]:
        """Apply `read` to the value; unknown stays unknown, and an error of `read` makes it unknown."""
        if self.why:
            return unknown(self.why)
        try:
            return Answer(read(cast("T", self.value)))
        except _UNREADABLE as error:
            return unknown(f"the answer cannot be read: {type(error).__name__}: {str(error)[:_SHOWN]}")


def both(first: Answer[T], second: Answer[S], read: Callable[[T, S], R]) -> Answer[R]:
    """Apply `read` to two values; unknown if one of them is."""
    if first.why:
        return unknown(first.why)
    return second.then(lambda value: read(cast("T", first.value), value))


def unknown(why: str) -> Answer[S]:
    """Return an unknown answer, with its reason as one line."""
    return Answer(None, " ".join(why.split()) or "no reason was given")
