"""What it takes to make the metastore what it was in a commit, and why some of it is not done. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from lakehouse.catalog import diff
from lakehouse.catalog.documents import Document, location, table_format
from lakehouse.catalog.names import Name
from lakehouse.catalog.past import Past
from lakehouse.catalog.store import Reader

# Tells whether a file or folder is there.
Exists = Callable[[str], bool]
# Of which the truth about columns and rows is in files of its own, and the metastore names them.
SELF_DESCRIBED = frozenset({"iceberg", "delta", "hudi"})
_EXTRA = "the commit does not have it; --drop takes it out of the catalog"
# Parents first.
_ORDER = ("database", "function", "table", "view", "partition")
_NOT_RESTORED = {
    "access": "roles, and privileges on everything, are not restored",
    "catalog": "what a catalog says of itself is not restored",
}


class Deed(StrEnum):
    """What becomes of an object of the metastore."""

    MAKE = "+"
    ALTER = "~"
    # There now, and not in the commit.
    DROP = "-"
    # Said, and not done.
    LEAVE = "!"


@dataclass(frozen=True)
class Step:
    """One object: its document now and in the commit, None where it is not there; `why` of one left alone."""

    deed: Deed
    kind: str
    name: Name
    now: Document | None = None
    then: Document | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.deed} {self.kind} {self.name}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True)
class Wanted:
    """Of what the metastore is to become: the tree of a commit, and the name of what is meant in it.

    With `drop`, what the commit does not have leaves the catalog.
    """

    tree: str
    scope: Name
    drop: bool = False


def plan(reader: Reader, now: str, wanted: Wanted, exists: Exists) -> tuple[Step, ...]:
    """Return the steps from the metastore's tree to a commit's, in their order.

    An Iceberg or Delta table that is there keeps its state: what it was is in its own metadata.
    """
    scope = wanted.scope
    planner = _Planner(Past(reader, now), Past(reader, wanted.tree), scope, exists, wanted.drop)
    found = dict.fromkeys((one.kind, one.name) for one in diff.changes(reader, now, wanted.tree))
    steps = [step for kind, name in found if _meant(name, scope) for step in planner.steps(kind, name)]
    return tuple(sorted(steps, key=_place))


def _meant(name: Name, scope: Name) -> bool:
    """Tell whether an object is what is asked for, is in it, or holds it."""
    return scope.holds(name) or name.holds(scope)


def _place(step: Step) -> tuple[bool, int, Name]:
    """Order what is dropped last and the other way round: an object after what is in it."""
    depth = _ORDER.index(step.kind) if step.kind in _ORDER else len(_ORDER)
    dropped = step.deed is Deed.DROP
    return dropped, -depth if dropped else depth, step.name


@dataclass(frozen=True)
class _Planner:
    """Makes the steps of one object after the other."""

    now: Past
    then: Past
    scope: Name
    exists: Exists
    drop: bool

    def steps(self, kind: str, name: Name) -> Iterator[Step]:
        """Give the steps of an object that is not in the metastore as it is in the commit."""
        if kind not in _ORDER:
            if kind in _NOT_RESTORED:
                yield Step(Deed.LEAVE, kind, name, why=_NOT_RESTORED[kind])
            return
        before, after = (self._said(past, name) for past in (self.now, self.then))
        # It is here for what is in it.
        above = name.holds(self.scope) and name != self.scope
        if after is None:
            if not above:
                yield self._gone(kind, name, before)
        elif before is None:
            yield from self._made(kind, name, after)
        elif not above:
            yield self._altered(kind, name, before, after)

    def _said(self, past: Past, name: Name) -> Document | None:
        return past.partition(name) if name.partition else past.said(name)

    def _gone(self, kind: str, name: Name, before: Document | None) -> Step:
        if self.drop:
            return Step(Deed.DROP, kind, name, before)
        return Step(Deed.LEAVE, kind, name, before, why=_EXTRA)

    def _made(self, kind: str, name: Name, after: Document) -> Iterator[Step]:
        if lacking := self._lacking(kind, after):
            yield Step(Deed.LEAVE, kind, name, None, after, lacking)
            return
        yield Step(Deed.MAKE, kind, name, None, after)
        if kind == "table":
            for one in self.then.partitions(name):
                partition = Name(name.catalog, name.database, name.table, one)
                if _meant(partition, self.scope) and (said := self.then.partition(partition)):
                    yield from self._made("partition", partition, said)

    def _altered(self, kind: str, name: Name, before: Document, after: Document) -> Step:
        # The kind is the commit's: a table may be there where it has a view, and the other way round.
        here, wanted = (table_format(one) if kind in {"table", "view"} else "" for one in (before, after))
        if here in SELF_DESCRIBED:
            why = f"a table of {here} that is there keeps its state; as it was: lakehouse catalog serve"
            return Step(Deed.LEAVE, kind, name, before, after, why)
        if wanted in SELF_DESCRIBED:
            why = f"a {'view' if here == 'view' else 'table of Hive'} has its name now: drop that first"
            return Step(Deed.LEAVE, kind, name, before, after, why)
        if lacking := self._lacking(kind, after):
            return Step(Deed.LEAVE, kind, name, before, after, lacking)
        return Step(Deed.ALTER, kind, name, before, after)

    def _lacking(self, kind: str, after: Document) -> str:
        """Return which file or folder of an object is not there; empty where nothing is missing."""
        wanted = needed(after) if kind == "table" else after.get("location") if kind == "partition" else None
        return f"{wanted} is not there" if wanted and not self.exists(wanted) else ""


def needed(table: Document) -> str | None:
    """Return the file or folder without which a table cannot be read; None for a view."""
    found = table_format(table)
    if found == "iceberg":
        return str(table["parameters"]["metadata_location"])
    return f"{location(table)}/_delta_log" if found == "delta" else location(table)
