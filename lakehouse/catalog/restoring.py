"""What it takes to make the metastore what it was in a commit, and why some of it is not done. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lakehouse.catalog import diff, readable
from lakehouse.catalog.documents import Document, table_format
from lakehouse.catalog.names import Name
from lakehouse.catalog.readable import FileFault, Files
from lakehouse.catalog.shared_files import TablePlaces, User, folders, may_share
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Reader
from plugins.module_utils.lakehouse.counting import counted

# Of which the truth about columns and rows is in files of its own, and the metastore names them.
SELF_DESCRIBED = frozenset({"iceberg", "delta", "hudi"})
TRANSACTIONAL = "it is transactional: which of its files count is in the metastore alone, and in no commit"
_NOWHERE = "is neither there nor in the snapshot of its table"
_EXTRA = "the commit does not have it; --drop takes it out of the catalog"
# Questions to the file system at a time.
_AT_ONCE = 16
_TABLES = frozenset({"table", "view"})
_SHARED = (
    "{table} uses its files ({path}), and an engine's DROP of one would remove the other's: rename {table}"
    " back, or restore what both are in with --drop, which takes {table} out first"
)
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
class Copy:
    """The folder of a dropped table or partition that a snapshot of HDFS still has, by the snapshot's name.

    `folder` is a path in HDFS. With `alone` the files in it are the table, and there may be no others.
    `bytes` counts each replica. `absent` are locations of partitions that are neither there nor in it.
    """

    snapshot: str
    folder: str
    alone: bool
    files: int = 0
    bytes: int = 0
    absent: tuple[str, ...] = ()

    @property
    def asked(self) -> dict[str, str | bool]:
        """What the cluster's program is asked for."""
        return {"snapshot": self.snapshot, "folder": self.folder, "alone": self.alone}

    def __str__(self) -> str:
        return f"{counted(self.files, 'file comes', 'files come')} back from {self.snapshot}"


# Answers of what was dropped, by name, with the copy of its files or with why there is none. It is asked with
# the documents of tables and of their partitions, and of partitions alone.
Undo = Callable[[Mapping[Name, Sequence[Document]]], Mapping[Name, Copy | str]]


def no_undo(_: Mapping[Name, Sequence[Document]]) -> Mapping[Name, Copy | str]:
    """Find nothing that was dropped."""
    return {}


@dataclass(frozen=True)
class Step:
    """One object: its document now and in the commit, None where it is not there; `why` of one left alone.

    `missing` are the URIs of the files and folders for the lack of which it is left alone, `copy` is where
    they come from before it is made.
    """

    deed: Deed
    kind: str
    name: Name
    now: Document | None = None
    then: Document | None = None
    why: str = ""
    missing: tuple[str, ...] = ()
    copy: Copy | None = None
    # Of a dropped one whose files another one is to get: before that.
    first: bool = False

    def __str__(self) -> str:
        more = self.why or str(self.copy or "")
        return f"{self.deed} {self.kind} {self.name}{f': {more}' if more else ''}"


@dataclass(frozen=True)
class Wanted:
    """Of what the metastore is to become: the tree of a commit, and the name of what is meant in it.

    With `drop`, what the commit does not have leaves the catalog. With `shares`, tables may get the files of
    others: for a clone.
    """

    tree: str
    scope: Name
    drop: bool = False
    shares: bool = False


def plan(reader: Reader, now: str, wanted: Wanted, files: Files, undo: Undo = no_undo) -> tuple[Step, ...]:
    """Return the steps from the metastore's tree to a commit's, in their order.

    An Iceberg or Delta table that is there keeps its state: what it was is in its own metadata.
    LakehouseError where the file system does not answer, and what `undo` raises.
    """
    scope, before, after = wanted.scope, Past(reader, now), Past(reader, wanted.tree)
    planner = _Planner(before, after, scope, wanted.drop)
    found = dict.fromkeys((one.kind, one.name) for one in diff.changes(reader, now, wanted.tree))
    steps = [step for kind, name in found if _meant(name, scope) for step in planner.steps(kind, name)]
    checked = sorted(_with_files(steps, files, undo), key=_place)
    return tuple(checked if wanted.shares else sorted(_Sharing(before, after).apart(checked), key=_place))


def _with_files(steps: Sequence[Step], files: Files, undo: Undo) -> Iterator[Step]:
    """Give the steps, those whose files are missing or damaged as left alone: a table with its partitions.

    What was dropped, and of which there is a copy, is made.
    """

    def checked(step: Step) -> Step:
        return _lacking(step, readable.file_faults(step.then or {}, files) if _writes(step) else [])

    of_tables: dict[Name, list[Step]] = {}
    for step in steps:
        if step.kind == "partition":
            of_tables.setdefault(_table(step.name), []).append(step)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        tables = list(pool.map(checked, (step for step in steps if step.kind == "table")))
    tables = _undone(
        tables, undo, {name: [one.then or {} for one in some] for name, some in of_tables.items()}
    )
    yield from tables
    left = {step.name for step in tables if step.missing and step.now is None}
    copied = {step.name: step.copy for step in tables if step.copy}
    for name, copy in copied.items():
        for step in of_tables.get(name, ()):
            folder = str((step.then or {}).get("location"))
            yield _lacking(step, [FileFault(folder, _NOWHERE)] if folder in copy.absent else [])
    partitions = [step for name, some in of_tables.items() if name not in {*left, *copied} for step in some]
    places = {
        step.name: place
        for step in partitions
        if _writes(step) and (place := (step.then or {}).get("location"))
    }
    faults = readable.folder_faults(places.values(), files)
    found = [faults.get(places.get(step.name, "")) for step in partitions]
    judged = [_lacking(step, [fault] if fault else []) for step, fault in zip(partitions, found, strict=True)]
    yield from _undone(judged, undo, {})
    yield from (step for step in steps if step.kind not in {"table", "partition"})


def _undone(steps: Sequence[Step], undo: Undo, more: Mapping[Name, Sequence[Document]]) -> list[Step]:
    """Return the steps, those as made whose files come back; `more` are documents of what is in them."""
    dropped = {
        step.name: [step.then or {}, *more.get(step.name, ())]
        for step in steps
        if step.missing and step.now is None
    }
    found = undo(dropped) if dropped else {}

    def one(step: Step) -> Step:
        answer = found.get(step.name)
        if isinstance(answer, Copy):
            return replace(step, deed=Deed.MAKE, why="", missing=(), copy=answer)
        return replace(step, why=f"{step.why}; {answer}") if answer else step

    return [one(step) for step in steps]


def _writes(step: Step) -> bool:
    return step.deed in {Deed.MAKE, Deed.ALTER}


def _lacking(step: Step, faults: Sequence[FileFault]) -> Step:
    """Return a step, as left alone where files are missing or damaged."""
    if not faults:
        return step
    missing = tuple(fault.path for fault in faults)
    return replace(step, deed=Deed.LEAVE, why=readable.in_one_line(faults), missing=missing)


def _table(partition: Name) -> Name:
    return replace(partition, partition="")


def _meant(name: Name, scope: Name) -> bool:
    """Tell whether an object is what is asked for, is in it, or holds it."""
    return scope.holds(name) or name.holds(scope)


def _place(step: Step) -> tuple[bool, int, Name]:
    """Order what is dropped last and the other way round: an object after what is in it."""
    if step.first:
        return False, -1, step.name
    depth = _ORDER.index(step.kind) if step.kind in _ORDER else len(_ORDER)
    dropped = step.deed is Deed.DROP
    return dropped, -depth if dropped else depth, step.name


@dataclass(frozen=True)
class _Sharing:
    """Leaves alone what would get the files of another table: a DROP or an expiry of one removes the other's.

    Two external tables of Hive's own formats may share files as they do in the commit, for no DROP removes
    any, and so may a table that shares on purpose.
    """

    before: Past
    after: Past

    def apart(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps, some of them as left alone, and what is dropped for others as the first."""
        if not any(map(_gets_files, steps)):
            return list(steps)
        # As they are when all steps are done.
        places = TablePlaces(self.before.every(Name()))
        for step in steps:
            if step.kind in _TABLES and step.deed in {Deed.DROP, Deed.ALTER}:
                places.put(step.name, step.then)
        altered = self._left(steps, Deed.ALTER, places)
        while altered != (again := self._left(altered, Deed.ALTER, places)):
            # A table that keeps its files may have those that another one was to get.
            altered = again
        found = self._left(altered, Deed.MAKE, places)
        left = {step.name for step in found if step.kind == "table" and _is_left(step) and step.now is None}
        kept = [step for step in found if not step.name.partition or _table(step.name) not in left]
        old = TablePlaces((one.name, one.now) for one in kept if one.deed is Deed.DROP and one.now)
        first = {user.table for step in kept if _gets_files(step) for user in old.users(step.then or {})}
        return [replace(step, first=step.deed is Deed.DROP and step.name in first) for step in kept]

    def _left(self, steps: Sequence[Step], deed: Deed, places: TablePlaces) -> list[Step]:
        """Return the steps, those of a deed as left alone that share files with `places`, which follow."""
        found = []
        for step in steps:
            one = step
            if step.deed is deed and _gets_files(step):
                if user := self._user(step, places):
                    why = _SHARED.format(table=user.table, path=user.path)
                    one = replace(step, deed=Deed.LEAVE, why=why, copy=None)
                if step.kind in _TABLES:
                    places.put(step.name, step.now if _is_left(one) else step.then)
            found.append(one)
        return found

    def _user(self, step: Step, places: TablePlaces) -> User | None:
        """Return the table with whose files a table or partition would be; None where there is none."""
        own, then = _table(step.name), step.then or {}
        for user in places.users(then):
            # The folders of most partitions are below that of their table.
            if user.table != own and not self._may_share(own, user.table, places):
                return user
        return None

    def _may_share(self, one: Name, other: Name, places: TablePlaces) -> bool:
        """Tell whether two tables may use the same files, as they do in the commit."""
        then, now, live = self.after.said(one), self.after.said(other), places.document(other)
        return bool(then and now and live and may_share(then, now, live) and folders(now) == folders(live))


def _is_left(step: Step) -> bool:
    return step.deed is Deed.LEAVE


def _gets_files(step: Step) -> bool:
    """Tell whether a step gives a table or partition files that it does not have now."""
    if not _writes(step) or step.kind not in {*_TABLES, "partition"}:
        return False
    return not set(folders(step.then or {})) <= set(folders(step.now or {}))


@dataclass(frozen=True)
class _Planner:
    """Makes the steps of one object after the other."""

    now: Past
    then: Past
    scope: Name
    drop: bool
    # Why a table is left alone, of those whose partitions are otherwise.
    ways: dict[Name, str] = field(default_factory=dict)

    def steps(self, kind: str, name: Name) -> Iterator[Step]:
        """Give the steps of an object that is not in the metastore as it is in the commit."""
        if kind not in _ORDER:
            if kind in _NOT_RESTORED:
                yield Step(Deed.LEAVE, kind, name, why=_NOT_RESTORED[kind])
            return
        before, after = (self._said(past, name) for past in (self.now, self.then))
        if kind == "partition" and before != after and (why := self._left_above(name)):
            # Its table is named in place of each of many.
            if name == self.scope:
                yield Step(Deed.LEAVE, kind, name, before, after, why)
            return
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

    def _left_above(self, name: Name) -> str:
        """Return why the table of a partition is left alone; empty where it is not, or is not in both."""
        table = _table(name)
        if table not in self.ways:
            before, after = self.now.said(table), self.then.said(table)
            self.ways[table] = in_the_way(before, after) if before and after else ""
        return self.ways[table]

    def _made(self, kind: str, name: Name, after: Document) -> Iterator[Step]:
        if is_transactional(after):
            yield Step(Deed.LEAVE, kind, name, None, after, TRANSACTIONAL)
            return
        yield Step(Deed.MAKE, kind, name, None, after)
        if kind == "table":
            for one in self.then.partitions(name):
                partition = Name(name.catalog, name.database, name.table, one)
                if _meant(partition, self.scope) and (said := self.then.partition(partition)):
                    yield from self._made("partition", partition, said)

    def _altered(self, kind: str, name: Name, before: Document, after: Document) -> Step:
        # The kind is the commit's: a table may be there where it has a view, and the other way round.
        why = in_the_way(before, after) if kind in {"table", "view"} else ""
        return Step(Deed.LEAVE if why else Deed.ALTER, kind, name, before, after, why)


def in_the_way(before: Document, after: Document) -> str:
    """Return why a table or view that is there does not become what it was; empty where it can."""
    here, wanted = table_format(before), table_format(after)
    if here in SELF_DESCRIBED:
        return f"a table of {here} that is there keeps its state; as it was: lakehouse catalog serve"
    if wanted in SELF_DESCRIBED:
        return f"a {'view' if here == 'view' else 'table of Hive'} has its name now: drop that first"
    # The metastore refuses other names, and takes another type or comment.
    if here != "view" and _keys(before) != _keys(after):
        return (
            f"the metastore changes no partition keys ({', '.join(_keys(before)) or 'none'}): drop it first"
        )
    return ""


def is_transactional(table: Document) -> bool:
    """Tell whether a table is one of Hive's ACID tables: rows count by transactions of the metastore."""
    return str(table.get("parameters", {}).get("transactional")).lower() == "true"


def _keys(table: Document) -> list[str]:
    return [str(one["name"]) for one in table.get("partition_keys", ())]
