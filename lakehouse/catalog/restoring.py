"""Plan the restore of a commit into the metastore, with the reasons of objects that are left alone. Pure."""

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
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Reader
from plugins.module_utils.lakehouse.counting import counted

# Formats whose metadata is in files, to which the metastore only points.
SELF_DESCRIBED = frozenset({"iceberg", "delta", "hudi"})
TRANSACTIONAL = "it is transactional: which of its files count is in the metastore alone, and in no commit"
_NOWHERE = "is neither there nor in the snapshot of its table"
_EXTRA = "the commit does not have it; --drop takes it out of the catalog"
# Parallel requests to the file system.
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


class Operation(StrEnum):
    """What a step does with an object of the metastore."""

    MAKE = "+"
    ALTER = "~"
    # The metastore has the object, and the commit does not.
    DROP = "-"
    # Reported, and not done.
    LEAVE = "!"


@dataclass(frozen=True)
class Copy:
    """The folder of a dropped table or partition in a snapshot of HDFS, by the snapshot's name.

    `folder` is a path in HDFS. If `exclusive`, the table consists of its files, so there may be no others.
    `bytes` counts each replica. `absent` are locations of partitions that neither HDFS nor the snapshot has.
    """

    snapshot: str
    folder: str
    exclusive: bool
    files: int = 0
    bytes: int = 0
    absent: tuple[str, ...] = ()

    @property
    def request(self) -> dict[str, str | bool]:
        """The request to the cluster's programs `lack` and `bring`."""
        return {"snapshot": self.snapshot, "folder": self.folder, "alone": self.exclusive}

    def __str__(self) -> str:
        return f"{counted(self.files, 'file comes', 'files come')} back from {self.snapshot}"


# Returns for dropped objects, by name, the copy of their files, or why there is none. Its argument has the
# documents of tables and of their partitions, or those of partitions alone.
Undo = Callable[[Mapping[Name, Sequence[Document]]], Mapping[Name, Copy | str]]


def no_undo(_: Mapping[Name, Sequence[Document]]) -> Mapping[Name, Copy | str]:
    """Return no copy of any dropped object."""
    return {}


@dataclass(frozen=True)
class Step:
    """A step for one object: its document in the metastore and in the commit, None if it is not there.

    `why` is the reason of an object that is left alone, `missing` are the URIs of the missing files and
    folders that are the reason. `copy` is the source of its files before it is made.
    """

    operation: Operation
    kind: str
    name: Name
    before: Document | None = None
    after: Document | None = None
    why: str = ""
    missing: tuple[str, ...] = ()
    copy: Copy | None = None
    # A table is dropped first if another one gets its files.
    first: bool = False

    def __str__(self) -> str:
        detail = self.why or str(self.copy or "")
        return f"{self.operation} {self.kind} {self.name}{f': {detail}' if detail else ''}"


@dataclass(frozen=True)
class RestoreTarget:
    """The target state of a restore: the tree of a commit, and the name of the objects to restore.

    With `drop`, objects that the commit lacks are dropped. With `shares`, tables may use the files of other
    tables: for a clone.
    """

    tree: str
    scope: Name
    drop: bool = False
    shares: bool = False


def plan(
    reader: Reader, now: str, target: RestoreTarget, files: Files, undo: Undo = no_undo
) -> tuple[Step, ...]:
    """Return the steps from the metastore's tree to that of a commit, in their order.

    An existing Iceberg or Delta table keeps its state: earlier states are in its own metadata.
    LakehouseError if the file system does not answer, and the errors of `undo`.
    """
    metastore, commit = SnapshotReader(reader, now), SnapshotReader(reader, target.tree)
    planner = _Planner(metastore, commit, target.scope, target.drop)
    changed = dict.fromkeys((change.kind, change.name) for change in diff.changes(reader, now, target.tree))
    steps = [
        step for kind, name in changed if _overlaps(name, target.scope) for step in planner.steps(kind, name)
    ]
    checked = sorted(_check_files(steps, files, undo), key=_position)
    if target.shares:
        return tuple(checked)
    return tuple(sorted(_Sharing(metastore, commit).separated(checked), key=_position))


def _check_files(steps: Sequence[Step], files: Files, undo: Undo) -> Iterator[Step]:
    """Give the steps; a table or partition whose files are missing or damaged is left alone.

    A dropped object is made if there is a copy of its files.
    """

    def check(step: Step) -> Step:
        return _with_faults(step, readable.file_faults(step.after or {}, files) if _writes(step) else [])

    by_table: dict[Name, list[Step]] = {}
    for step in steps:
        if step.kind == "partition":
            by_table.setdefault(_table(step.name), []).append(step)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        tables = list(pool.map(check, (step for step in steps if step.kind == "table")))
    documents = {name: [step.after or {} for step in partitions] for name, partitions in by_table.items()}
    tables = _with_copies(tables, undo, documents)
    yield from tables
    unavailable = {step.name for step in tables if step.missing and step.before is None}
    copied = {step.name: step.copy for step in tables if step.copy}
    for name, copy in copied.items():
        for step in by_table.get(name, ()):
            folder = str((step.after or {}).get("location"))
            yield _with_faults(step, [FileFault(folder, _NOWHERE)] if folder in copy.absent else [])
    partitions = [
        step
        for name, table_steps in by_table.items()
        if name not in {*unavailable, *copied}
        for step in table_steps
    ]
    places = {
        step.name: place
        for step in partitions
        if _writes(step) and (place := (step.after or {}).get("location"))
    }
    faults = readable.folder_faults(places.values(), files)
    checked = []
    for step in partitions:
        fault = faults.get(places.get(step.name, ""))
        checked.append(_with_faults(step, [fault] if fault else []))
    yield from _with_copies(checked, undo, {})
    yield from (step for step in steps if step.kind not in {"table", "partition"})


def _with_copies(
    steps: Sequence[Step], undo: Undo, partitions: Mapping[Name, Sequence[Document]]
) -> list[Step]:
    """Return the steps; a dropped object with a copy of its files is made. `partitions` are by table."""
    dropped = {
        step.name: [step.after or {}, *partitions.get(step.name, ())]
        for step in steps
        if step.missing and step.before is None
    }
    copies = undo(dropped) if dropped else {}

    def with_copy(step: Step) -> Step:
        answer = copies.get(step.name)
        if isinstance(answer, Copy):
            return replace(step, operation=Operation.MAKE, why="", missing=(), copy=answer)
        return replace(step, why=f"{step.why}; {answer}") if answer else step

    return [with_copy(step) for step in steps]


def _writes(step: Step) -> bool:
    return step.operation in {Operation.MAKE, Operation.ALTER}


def _with_faults(step: Step, faults: Sequence[FileFault]) -> Step:
    """Return a step; with missing or damaged files its object is left alone."""
    if not faults:
        return step
    missing = tuple(fault.path for fault in faults)
    return replace(step, operation=Operation.LEAVE, why=readable.in_one_line(faults), missing=missing)


def _table(partition: Name) -> Name:
    return replace(partition, partition="")


def _overlaps(name: Name, scope: Name) -> bool:
    """Return whether an object equals the scope, is in it, or contains it."""
    return scope.holds(name) or name.holds(scope)


def _position(step: Step) -> tuple[bool, int, Name]:
    """Return the sort key: parents first; drops come last, with the parents after their contents."""
    if step.first:
        return False, -1, step.name
    depth = _ORDER.index(step.kind) if step.kind in _ORDER else len(_ORDER)
    dropped = step.operation is Operation.DROP
    return dropped, -depth if dropped else depth, step.name


@dataclass(frozen=True)
class _Sharing:
    """Leaves tables alone that would get the files of another table, whose DROP or expiry removes them.

    Two external tables of Hive's own formats may share files as they do in the commit, since no DROP removes
    any, and so may a table that shares on purpose.
    """

    metastore: SnapshotReader
    commit: SnapshotReader

    def separated(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps, with tables left alone that would share files, and drops first that free them."""
        if not any(map(_gets_files, steps)):
            return list(steps)
        # The state after all steps.
        places = TablePlaces(self.metastore.tables_in(Name()))
        for step in steps:
            if step.kind in _TABLES and step.operation in {Operation.DROP, Operation.ALTER}:
                places.put(step.name, step.after)
        altered = self._without_sharing(steps, Operation.ALTER, places)
        while altered != (next_steps := self._without_sharing(altered, Operation.ALTER, places)):
            # A table that keeps its files may use those that another one was to get.
            altered = next_steps
        separated = self._without_sharing(altered, Operation.MAKE, places)
        not_made = {
            step.name
            for step in separated
            if step.kind == "table" and _is_left_alone(step) and step.before is None
        }
        remaining = [
            step for step in separated if not step.name.partition or _table(step.name) not in not_made
        ]
        dropped = TablePlaces(
            (step.name, step.before) for step in remaining if step.operation is Operation.DROP and step.before
        )
        first = {
            user.table for step in remaining if _gets_files(step) for user in dropped.users(step.after or {})
        }
        return [
            replace(step, first=step.operation is Operation.DROP and step.name in first) for step in remaining
        ]

    def _without_sharing(
        self, steps: Sequence[Step], operation: Operation, places: TablePlaces
    ) -> list[Step]:
        """Return the steps; those of an operation that would share files with `places` are left alone.

        `places` is updated.
        """
        separated = []
        for step in steps:
            new_step = step
            if step.operation is operation and _gets_files(step):
                if user := self._user(step, places):
                    why = _SHARED.format(table=user.table, path=user.path)
                    new_step = replace(step, operation=Operation.LEAVE, why=why, copy=None)
                if step.kind in _TABLES:
                    places.put(step.name, step.before if _is_left_alone(new_step) else step.after)
            separated.append(new_step)
        return separated

    def _user(self, step: Step, places: TablePlaces) -> User | None:
        """Return the table that uses the files which a step gives to another table; None without any."""
        table = _table(step.name)
        for user in places.users(step.after or {}):
            # The folders of most partitions are below that of their table.
            if user.table != table and not self._may_share(table, user.table, places):
                return user
        return None

    def _may_share(self, table: Name, user: Name, places: TablePlaces) -> bool:
        """Return whether two tables may use the same files, as they do in the commit."""
        document, user_document = self.commit.document(table), self.commit.document(user)
        live = places.document(user)
        if not (document and user_document and live):
            return False
        return may_share(document, user_document, live) and folders(user_document) == folders(live)


def _is_left_alone(step: Step) -> bool:
    return step.operation is Operation.LEAVE


def _gets_files(step: Step) -> bool:
    """Return whether a step gives a table or partition files that it does not have now."""
    if not _writes(step) or step.kind not in {*_TABLES, "partition"}:
        return False
    return not set(folders(step.after or {})) <= set(folders(step.before or {}))


@dataclass(frozen=True)
class _Planner:
    """Plans the steps of each object."""

    metastore: SnapshotReader
    commit: SnapshotReader
    scope: Name
    drop: bool
    # Why tables with changed partitions are left alone, by name.
    reasons: dict[Name, str] = field(default_factory=dict)

    def steps(self, kind: str, name: Name) -> Iterator[Step]:
        """Give the steps of an object that differs between the metastore and the commit."""
        if kind not in _ORDER:
            if kind in _NOT_RESTORED:
                yield Step(Operation.LEAVE, kind, name, why=_NOT_RESTORED[kind])
            return
        before, after = (_document(reader, name) for reader in (self.metastore, self.commit))
        if kind == "partition" and before != after and (why := self._why_table_is_left(name)):
            # The table is reported once, in place of each of its partitions.
            if name == self.scope:
                yield Step(Operation.LEAVE, kind, name, before, after, why)
            return
        # A parent of the scope is only made, never dropped or altered.
        is_parent = name.holds(self.scope) and name != self.scope
        if after is None:
            if not is_parent:
                yield self._drop(kind, name, before)
        elif before is None:
            yield from self._make(kind, name, after)
        elif not is_parent:
            yield self._alter(kind, name, before, after)

    def _drop(self, kind: str, name: Name, before: Document | None) -> Step:
        if self.drop:
            return Step(Operation.DROP, kind, name, before)
        return Step(Operation.LEAVE, kind, name, before, why=_EXTRA)

    def _why_table_is_left(self, partition: Name) -> str:
        """Return why the table of a partition is left alone; empty if it is not, or is not in both trees."""
        table = _table(partition)
        if table not in self.reasons:
            before, after = self.metastore.document(table), self.commit.document(table)
            self.reasons[table] = why_not_altered(before, after) if before and after else ""
        return self.reasons[table]

    def _make(self, kind: str, name: Name, after: Document) -> Iterator[Step]:
        if is_transactional(after):
            yield Step(Operation.LEAVE, kind, name, None, after, TRANSACTIONAL)
            return
        yield Step(Operation.MAKE, kind, name, None, after)
        if kind == "table":
            for partition in self.commit.partitions(name):
                partition_name = Name(name.catalog, name.database, name.table, partition)
                if _overlaps(partition_name, self.scope) and (
                    document := self.commit.partition(partition_name)
                ):
                    yield from self._make("partition", partition_name, document)

    def _alter(self, kind: str, name: Name, before: Document, after: Document) -> Step:
        # The kind is that in the commit: the metastore may have a table in place of a view, or vice versa.
        why = why_not_altered(before, after) if kind in {"table", "view"} else ""
        return Step(Operation.LEAVE if why else Operation.ALTER, kind, name, before, after, why)


def _document(reader: SnapshotReader, name: Name) -> Document | None:
    return reader.partition(name) if name.partition else reader.document(name)


def why_not_altered(before: Document, after: Document) -> str:
    """Return why an existing table or view cannot be altered to another state; empty if it can."""
    old_format, new_format = table_format(before), table_format(after)
    if old_format in SELF_DESCRIBED:
        return f"a table of {old_format} that is there keeps its state; as it was: lakehouse catalog serve"
    if new_format in SELF_DESCRIBED:
        return f"a {'view' if old_format == 'view' else 'table of Hive'} has its name now: drop that first"
    # The metastore refuses other names of keys, and accepts another type or comment.
    if old_format != "view" and _keys(before) != _keys(after):
        return (
            f"the metastore changes no partition keys ({', '.join(_keys(before)) or 'none'}): drop it first"
        )
    return ""


def is_transactional(table: Document) -> bool:
    """Return whether a table is an ACID table of Hive, whose rows depend on transactions of the metastore."""
    return str(table.get("parameters", {}).get("transactional")).lower() == "true"


def _keys(table: Document) -> list[str]:
    return [str(column["name"]) for column in table.get("partition_keys", ())]
