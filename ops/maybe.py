"""What was asked and what is known of it: a value, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

T = TypeVar("T")
S = TypeVar("S")
_SHOWN = 300
# What an answer of another form than expected raises, whatever reads it.
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
        """Return what `read` makes of the value; unknown stays so, and what cannot be read becomes so."""
        if self.why:
            return unknown(self.why)
        try:
            return Answer(read(cast("T", self.value)))
        except _UNREADABLE as error:
            return unknown(f"the answer cannot be read: {type(error).__name__}: {str(error)[:_SHOWN]}")


def both(first: Answer[T], second: Answer[S], read: Callable[[T, S], R]) -> Answer[R]:
    """Return what `read` makes of two values; unknown if one of them is."""
    if first.why:
        return unknown(first.why)
    return second.then(lambda value: read(cast("T", first.value), value))


def unknown(why: str) -> Answer[S]:
    """Return an answer without a value, for a reason of one line."""
    return Answer(None, " ".join(why.split()) or "no reason was given")
