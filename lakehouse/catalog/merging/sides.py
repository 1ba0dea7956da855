"""The inputs of a merge, the choice of a side, and conflicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from lakehouse.catalog import text
from lakehouse.catalog.names import Name

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S")
K = TypeVar("K")


class Side(StrEnum):
    """One of the two states to merge."""

    OURS = "ours"
    THEIRS = "theirs"


class Three(NamedTuple, Generic[T_co]):
    """A value in the common base, and on each side."""

    base: T_co
    ours: T_co
    theirs: T_co

    @property
    def apart(self) -> bool:
        """Whether both sides have changed the value, and differ."""
        return self.ours != self.theirs and self.base not in (self.ours, self.theirs)

    @property
    def clean(self) -> T_co:
        """The merged value, if the sides are not `apart`: that of the side that has changed it."""
        return self.theirs if self.ours == self.base else self.ours

    def of(self, side: Side | None) -> T_co:
        """Return the value of a side; ours for None."""
        return self.theirs if side is Side.THEIRS else self.ours

    def each(self, work: Callable[[T_co], S]) -> Three[S]:
        """Apply a function to each of the values."""
        return Three(work(self.base), work(self.ours), work(self.theirs))


def at(three: Three[Mapping[K, T]], key: K, default: S) -> Three[T | S]:
    """Return the values of a key."""
    return Three(*(mapping.get(key, default) for mapping in three))


@dataclass(frozen=True)
class Choice:
    """The options of a merge: the side that wins conflicts, and whether a new state of files is a change."""

    side: Side | None = None
    data: bool = True


@dataclass(frozen=True)
class Clash:
    """A field of a document that both sides have changed to different values; None for a missing value.

    `why` is the reason of an inconsistency between different changes of the sides.
    """

    field: str
    values: Three[Any]
    why: str = ""


@dataclass(frozen=True)
class Conflict:
    """A clash with the name of its object; its `field` is the object's kind if one side has dropped it."""

    kind: str
    name: Name
    clash: Clash

    def __str__(self) -> str:
        field, values = self.clash.field, self.clash.values
        base, ours, theirs = values.each(lambda value: text.value(field, value))
        # Names may contain control characters.
        where = text.printable(f"{str(self.name) or self.kind}: {field}")
        if self.clash.why:
            return f"{where}: {text.printable(self.clash.why)}"
        return f"{where}: ours {ours}, theirs {theirs} (base {base})"

    def json(self) -> dict[str, Any]:
        """Return the conflict for JSON."""
        return {
            "kind": self.kind, **self.name.json(), "field": self.clash.field, **self.clash.values._asdict(),
            **({"why": self.clash.why} if self.clash.why else {}),
        }  # fmt: skip
