"""Write objects of a commit into the metastore by Thrift, without removing any file.

Each object is compared with the state in the plan right before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from hive_metastore.ttypes import EnvironmentContext, NoSuchObjectException

from lakehouse.catalog.bindings import objects
from lakehouse.catalog.bindings.field_reader import ReportField
from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Operation, Step
from lakehouse.cluster_catalog import alter, grants_and_constraints
from lakehouse.errors import LakehouseError
from lakehouse.metastore import Metastore
from lakehouse.metastore.iceberg import iceberg_requests
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse.counting import counted

_AT_ONCE = 500
# Otherwise the metastore would list every file to update the statistics.
_KEEP_STATISTICS = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
# The arguments `deleteData` and `cascade` of drops.
_KEEP_FILES, _NO_CASCADE = False, False
Progress = Callable[[Sequence[Step]], None]
T = TypeVar("T")


@dataclass(frozen=True)
class PlannedStep:
    """A step, and the Thrift object when the plan was made; None without an object."""

    step: Step
    object: Any


class ChangedError(LakehouseError):
    """An object has changed since the plan was made."""

    def __init__(self, name: Name) -> None:
        super().__init__(f"{name} has changed since the plan was made", "the same command")


class Metadata:
    """The metastore as a restore reads and writes it; `report_field` gets fields that Thrift cannot hold."""

    def __init__(self, metastore: Metastore, report_field: ReportField) -> None:
        self._metastore, self._call, self._report_field = metastore, metastore.call, report_field

    def _read_object(self, step: Step) -> Any:
        """Return the current object of a step, other than a partition; None without any."""
        name = step.name
        try:
            if step.kind == "database":
                return self._call("get_database", name.thrift_database)
            if step.kind == "function":
                return self._call("get_function", name.thrift_database, name.function)
            return self._call("get_table", name.thrift_database, name.table)
        except NoSuchObjectException:
            return None

    def _read_partitions(self, steps: Sequence[Step]) -> list[Any]:
        """Return the current partitions of one table; None for a missing one."""
        table, names = steps[0].name, [step.name.partition for step in steps]
        try:
            partitions = self._metastore.known_partitions(table.thrift_database, table.table, names)
        except NoSuchObjectException:
            return [None] * len(steps)
        return [partitions.get(name) for name in names]

    def all(self, steps: Sequence[Step]) -> list[PlannedStep]:
        """Return the steps with their current objects."""
        return [
            PlannedStep(step, current)
            for batch in _batches(steps, lambda step: step)
            for step, current in zip(batch, self._read(batch), strict=True)
        ]

    def _read(self, batch: Sequence[Step]) -> list[Any]:
        """Return the current objects of a batch of steps."""
        if batch[0].kind == "partition":
            return self._read_partitions(batch)
        return [self._read_object(step) for step in batch]

    def write(self, planned: Sequence[PlannedStep], begins: Progress, done: Progress) -> None:
        """Do the steps in their order, in batches of partitions; `begins` and `done` get those of a batch.

        Raises ChangedError before the first step whose object has changed, and the errors of the metastore.
        """
        for batch in _batches(planned, lambda item: item.step):
            steps = [item.step for item in batch]
            objects_ = self._read(steps)
            for item, current in zip(batch, objects_, strict=True):
                if not _same(current, item.object):
                    raise ChangedError(item.step.name)
            begins(steps)
            if steps[0].kind == "partition":
                self._write_partitions(steps, objects_)
            else:
                self._write_object(steps[0], objects_[0])
            for step in steps:
                if step.operation is not Operation.DROP:
                    grants_and_constraints.put_privileges(self._call, step, self._report_field)
            done(steps)
        tables = [
            item.step
            for item in planned
            if item.step.kind == "table" and item.step.operation is not Operation.DROP
        ]
        grants_and_constraints.add_constraints(self._call, tables, self._report_field)

    def _write_object(self, step: Step, current: Any) -> None:
        name, kind = step.name, "table" if step.kind == "view" else step.kind
        if step.operation is Operation.DROP:
            self._drop(kind, name)
            return
        if step.operation is Operation.ALTER:
            alter.report_unaltered(step, self._report_field)
        if kind == "function" and alter.must_recreate(step):
            self._drop(kind, name)
            step = replace(step, operation=Operation.MAKE)
        volatile = (alter.kept_volatile(step, current),) if kind == "table" else ()
        new = getattr(objects, kind)(name, step.after, self._report_field, *volatile)
        arguments: dict[tuple[str, Operation], tuple[Any, ...]] = {
            ("database", Operation.MAKE): ("create_database", new),
            ("database", Operation.ALTER): ("alter_database", name.thrift_database, new),
            ("function", Operation.MAKE): ("create_function", new),
            ("function", Operation.ALTER): (
                "alter_function",
                name.thrift_database,
                name.function,
                new,
            ),
            ("table", Operation.MAKE): (
                "create_table_with_environment_context",
                new,
                _KEEP_STATISTICS,
            ),
        }
        if (kind, step.operation) not in {*arguments, ("table", Operation.ALTER)}:
            raise LakehouseError(f"{kind} {name}: a {kind} cannot be restored", f"{PROGRAM} catalog show")
        if kind == "table":
            grants_and_constraints.drop_constraints(self._call, step)
        if kind == "table" and step.operation is Operation.ALTER:
            for request in iceberg_requests(new, current):
                self._call(
                    "alter_table_with_environment_context",
                    name.thrift_database,
                    name.table,
                    request,
                    _KEEP_STATISTICS,
                )
            return
        self._call(*arguments[kind, step.operation])

    def _drop(self, kind: str, name: Name) -> None:
        if kind == "table":
            self._call("drop_table", name.thrift_database, name.table, _KEEP_FILES)
        elif kind == "function":
            self._call("drop_function", name.thrift_database, name.function)
        elif kind == "database":
            self._call("drop_database", name.thrift_database, _KEEP_FILES, _NO_CASCADE)

    def _write_partitions(self, steps: Sequence[Step], current: Sequence[Any]) -> None:
        first = steps[0]
        table = first.name.thrift_database, first.name.table
        if first.operation is Operation.DROP:
            for step in steps:
                self._call("drop_partition_by_name", *table, step.name.partition, _KEEP_FILES)
            return
        partitions = [
            objects.partition(
                step.name, step.after or {}, self._report_field, alter.kept_volatile(step, partition)
            )
            for step, partition in zip(steps, current, strict=True)
        ]
        if first.operation is Operation.MAKE:
            self._call("add_partitions", partitions)
        else:
            for step in steps:
                alter.report_unaltered(step, self._report_field)
            self._call("alter_partitions", *table, partitions)


def _same(current: Any, planned: Any) -> bool:
    """Return whether an object is unchanged, except for its volatile part.

    When a table is altered, the metastore also writes such parameters into its partitions.
    """
    return bool(alter.without_volatile(current) == alter.without_volatile(planned))


def in_one_line(steps: Sequence[Step]) -> str:
    """Return a batch of steps as one line: the step, or the number of partitions and their table."""
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        return str(first)
    table = replace(first.name, partition="")
    partitions = counted(len(steps), "partition")
    return f"{first.operation} {partitions} of {table}: {first.name.partition} to {last.name.partition}"


def _batches(items: Iterable[T], step_of: Callable[[T], Step]) -> Iterator[list[T]]:
    """Give the items of steps in batches: of one item each, or of several partitions of a table."""

    def key(item: T) -> tuple[Any, ...]:
        step = step_of(item)
        return step.operation, step.kind, step.name.path if step.kind == "partition" else step.name

    for _, group in groupby(items, key):
        batch = list(group)
        for start in range(0, len(batch), _AT_ONCE):
            yield batch[start : start + _AT_ONCE]
