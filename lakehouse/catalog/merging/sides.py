"""What a merge compares, which side it takes where asked to, and what it cannot decide."""

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
    """One of two states that become one."""

    OURS = "ours"
    THEIRS = "theirs"


class Three(NamedTuple, Generic[T_co]):
    """Something as it was in the state that both come from, and as it is in each."""

    base: T_co
    ours: T_co
    theirs: T_co

    @property
    def apart(self) -> bool:
        """Tell whether each side has changed it, and not to the same."""
        return self.ours != self.theirs and self.base not in (self.ours, self.theirs)

    @property
    def clean(self) -> T_co:
        """What it becomes where they are not apart: what the side made of it that has changed it."""
        return self.theirs if self.ours == self.base else self.ours

    def of(self, side: Side | None) -> T_co:
        """Return what it is on a side; ours where none is said."""
        return self.theirs if side is Side.THEIRS else self.ours

    def each(self, work: Callable[[T_co], S]) -> Three[S]:
        """Return what is made of each."""
        return Three(work(self.base), work(self.ours), work(self.theirs))


def at(three: Three[Mapping[K, T]], key: K, nothing: S) -> Three[T | S]:
    """Return what each has under a key."""
    return Three(*(one.get(key, nothing) for one in three))


@dataclass(frozen=True)
class Choice:
    """How to decide: which side has conflicts, and whether a new state of a table's files is a change."""

    side: Side | None = None
    data: bool = True


@dataclass(frozen=True)
class Clash:
    """A field of a document that each side has changed, and not to the same; None where it is not there.

    `why` is of one in which the sides do not fit together, though each has changed something else.
    """

    field: str
    values: Three[Any]
    why: str = ""


@dataclass(frozen=True)
class Conflict:
    """A clash with the name of its object: `field` is the object's kind where one side has dropped it."""

    kind: str
    name: Name
    clash: Clash

    def __str__(self) -> str:
        field, values = self.clash.field, self.clash.values
        base, ours, theirs = values.each(lambda value: text.value(field, value))
        # A name may hold whatever its engine lets it.
        where = text.printable(f"{str(self.name) or self.kind}: {field}")
        if self.clash.why:
            return f"{where}: {text.printable(self.clash.why)}"
        return f"{where}: ours {ours}, theirs {theirs} (base {base})"

    def json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "kind": self.kind, **self.name.json(), "field": self.clash.field, **self.clash.values._asdict(),
            **({"why": self.clash.why} if self.clash.why else {}),
        }  # fmt: skip
