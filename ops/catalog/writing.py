"""Writes objects of a commit into the metastore by Thrift, and never removes a file.

What is there has to be what the plan has seen: it is compared right before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from hive_metastore.ttypes import EnvironmentContext, NoSuchObjectException

from lakehouse.catalog.bindings import objects
from lakehouse.catalog.bindings.field_reader import Lost
from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Deed, Step
from lakehouse.errors import LakehouseError
from lakehouse.metastore import Metastore
from lakehouse.metastore.iceberg import iceberg_requests
from lakehouse.next_command import PROGRAM
from ops.catalog import alter, grants_and_constraints
from plugins.module_utils.lakehouse.counting import counted

_AT_ONCE = 500
# The metastore would list every file to count it anew.
_AS_IT_IS = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})
_KEEP_FILES, _ALONE = False, False
Told = Callable[[Sequence[Step]], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """A step, and the object in Thrift's words when the plan was made; None where there was none."""

    step: Step
    object: Any


class ChangedError(LakehouseError):
    """An object is no longer what the plan has seen."""

    def __init__(self, name: Name) -> None:
        super().__init__(f"{name} has changed since the plan was made", "the same command")


class Metadata:
    """The metastore as a restore sees and writes it; `lost` is told what Thrift has no place for."""

    def __init__(self, metastore: Metastore, lost: Lost) -> None:
        self._metastore, self._call, self._lost = metastore, metastore.call, lost

    def _one_seen(self, step: Step) -> Any:
        """Return an object as it is now, other than a partition; None where there is none."""
        name = step.name
        try:
            if step.kind == "database":
                return self._call("get_database", name.thrift_database)
            if step.kind == "function":
                return self._call("get_function", name.thrift_database, name.function)
            return self._call("get_table", name.thrift_database, name.table)
        except NoSuchObjectException:
            return None

    def _partitions_seen(self, steps: Sequence[Step]) -> list[Any]:
        """Return partitions of one table as they are now; None for one that is not there."""
        table, names = steps[0].name, [step.name.partition for step in steps]
        try:
            found = self._metastore.known_partitions(table.thrift_database, table.table, names)
        except NoSuchObjectException:
            return [None] * len(steps)
        return [found.get(name) for name in names]

    def all(self, steps: Sequence[Step]) -> list[Seen]:
        """Return steps with what they are about, as it is now."""
        return [
            Seen(step, found)
            for some in _together(steps, lambda step: step)
            for step, found in zip(some, self._seen(some), strict=True)
        ]

    def _seen(self, steps: Sequence[Step]) -> list[Any]:
        """Return what steps are about that are done together, as it is now."""
        if steps[0].kind == "partition":
            return self._partitions_seen(steps)
        return [self._one_seen(step) for step in steps]

    def write(self, seen: Sequence[Seen], begins: Told, told: Told) -> None:
        """Do steps in their order, partitions of a table together; `begins` and `told` get those of one call.

        Raises ChangedError before the first whose object is not what was seen, and what the metastore raises.
        """
        for some in _together(seen, lambda one: one.step):
            steps = [one.step for one in some]
            there = self._seen(steps)
            for one, now in zip(some, there, strict=True):
                if not _same(now, one.object):
                    raise ChangedError(one.step.name)
            begins(steps)
            if steps[0].kind == "partition":
                self._partitions(steps, there)
            else:
                self._one(steps[0], there[0])
            for step in steps:
                if step.deed is not Deed.DROP:
                    grants_and_constraints.put_privileges(self._call, step, self._lost)
            told(steps)
        tables = [one.step for one in seen if one.step.kind == "table" and one.step.deed is not Deed.DROP]
        grants_and_constraints.add_constraints(self._call, tables, self._lost)

    def _one(self, step: Step, there: Any) -> None:
        name, kind = step.name, "table" if step.kind == "view" else step.kind
        if step.deed is Deed.DROP:
            self._drop(kind, name)
            return
        if step.deed is Deed.ALTER:
            alter.unheard(step, self._lost)
        if kind == "function" and alter.anew(step):
            self._drop(kind, name)
            step = replace(step, deed=Deed.MAKE)
        counted = (alter.volatile(step, there),) if kind == "table" else ()
        made = getattr(objects, kind)(name, step.then, self._lost, *counted)
        arguments: dict[tuple[str, Deed], tuple[Any, ...]] = {
            ("database", Deed.MAKE): ("create_database", made),
            ("database", Deed.ALTER): ("alter_database", name.thrift_database, made),
            ("function", Deed.MAKE): ("create_function", made),
            ("function", Deed.ALTER): ("alter_function", name.thrift_database, name.function, made),
            ("table", Deed.MAKE): ("create_table_with_environment_context", made, _AS_IT_IS),
        }
        if (kind, step.deed) not in {*arguments, ("table", Deed.ALTER)}:
            raise LakehouseError(f"{kind} {name}: a {kind} cannot be restored", f"{PROGRAM} catalog show")
        if kind == "table":
            grants_and_constraints.drop_constraints(self._call, step)
        if kind == "table" and step.deed is Deed.ALTER:
            for request in iceberg_requests(made, there):
                self._call(
                    "alter_table_with_environment_context",
                    name.thrift_database,
                    name.table,
                    request,
                    _AS_IT_IS,
                )
            return
        self._call(*arguments[kind, step.deed])

    def _drop(self, kind: str, name: Name) -> None:
        if kind == "table":
            self._call("drop_table", name.thrift_database, name.table, _KEEP_FILES)
        elif kind == "function":
            self._call("drop_function", name.thrift_database, name.function)
        elif kind == "database":
            self._call("drop_database", name.thrift_database, _KEEP_FILES, _ALONE)

    def _partitions(self, some: Sequence[Step], there: Sequence[Any]) -> None:
        first = some[0]
        above = first.name.thrift_database, first.name.table
        if first.deed is Deed.DROP:
            for step in some:
                self._call("drop_partition_by_name", *above, step.name.partition, _KEEP_FILES)
            return
        made = [
            objects.partition(step.name, step.then or {}, self._lost, alter.volatile(step, now))
            for step, now in zip(some, there, strict=True)
        ]
        if first.deed is Deed.MAKE:
            self._call("add_partitions", made)
        else:
            for step in some:
                alter.unheard(step, self._lost)
            self._call("alter_partitions", *above, made)


def _same(one: Any, other: Any) -> bool:
    """Tell whether an object is as it was, but for what engines write beside it.

    An altered table has the metastore write so into partitions whose turn comes later.
    """
    return bool(alter.meant(one) == alter.meant(other))


def in_one_line(steps: Sequence[Step]) -> str:
    """Return steps that are done together as one line: the step, or how many of which table."""
    first, last = steps[0], steps[-1]
    if len(steps) == 1:
        return str(first)
    table = replace(first.name, partition="")
    some = counted(len(steps), "partition")
    return f"{first.deed} {some} of {table}: {first.name.partition} to {last.name.partition}"


def _together(found: Iterable[T], step_of: Callable[[T], Step]) -> Iterator[list[T]]:
    """Give what is about steps one by one, of a table's partitions in lists."""

    def key(one: T) -> tuple[Any, ...]:
        step = step_of(one)
        return step.deed, step.kind, step.name.path if step.kind == "partition" else step.name

    for _, group in groupby(found, key):
        some = list(group)
        for start in range(0, len(some), _AT_ONCE):
            yield some[start : start + _AT_ONCE]
