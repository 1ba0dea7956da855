"""The units in an Iceberg table, by a Spark session: read, modify in one commit, and the version.

The table is partitioned by the four keys of a unit, so that a change replaces whole files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as spark_functions
from pyspark.sql.types import (
    ArrayType,
    DataType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from lakehouse.census import filters, model
from lakehouse.census.filters import Filter
from lakehouse.census.java_errors import Py4JError
from lakehouse.census.model import COLUMNS, GENERAL_INFO, KEYS, Key, MetadataType, MetadataUnit

DATABASE, TABLE = "lakehouse_meta", "units"
_TEXT = StringType()
_TYPES: dict[str, DataType] = {
    **dict.fromkeys(
        ("interesting_columns", "metadata_statistics", "locations", "partition_values"), ArrayType(_TEXT)
    ),
    **dict.fromkeys(("columns_statistics", "partition_keys"), MapType(_TEXT, _TEXT)),
    "last_modified_time": LongType(),
    "row_group_index": IntegerType(),
    "host_affinity": MapType(_TEXT, FloatType()),
}
SCHEMA = StructType([
    StructField(name, _TYPES.get(name, _TEXT), name not in {*KEYS, "metadata_type"}) for name in COLUMNS
])  # fmt: skip
# A key has one small file. Rows are sorted by key, so that a task has one open file: a writer that fans out
# would have thousands. Old snapshots expire after a commit, by the last two.
PROPERTIES = {
    "format-version": "2",
    "write.distribution-mode": "hash",
    "write.spark.fanout.enabled": "false",
    # Thousands of files with a few rows each: Parquet takes more than twice the time, and the space.
    "write.format.default": "avro",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "history.expire.max-snapshot-age-ms": str(7 * 24 * 3600 * 1000),
    "history.expire.min-snapshots-to-keep": "5",
}


# org.apache.iceberg.exceptions: another commit has changed the same keys, or the outcome is unknown.
_CONFLICTS = ("exceptions.ValidationException", "exceptions.CommitFailedException")
_UNKNOWN = "exceptions.CommitStateUnknownException"


def properties() -> str:
    """Return the properties of the census' tables as they are in Spark's SQL."""
    return ", ".join(f"'{name}'='{value}'" for name, value in PROPERTIES.items())


class ConflictError(Exception):
    """Another run has changed the same units; nothing was written."""


class UnknownCommitError(Exception):
    """The catalog did not confirm a commit: it may have been written."""


class RequestError(ValueError):
    """A request is refused before it reads or writes: which part of it, and what is allowed."""


@dataclass(frozen=True)
class Overwrite:
    """Replace all units of `keys` by those of a frame, which has no others."""

    keys: frozenset[Key]
    frame: DataFrame


@dataclass(frozen=True)
class Delete:
    """Delete all units whose keys match a filter."""

    filter: Filter


Operation = Overwrite | Delete


class Store:
    """The table of units in a catalog of a Spark session."""

    def __init__(self, spark: SparkSession, catalog: str = "iceberg", database: str = DATABASE) -> None:
        self.spark = spark
        self.name = f"{catalog}.{database}.{TABLE}"
        self._database = f"{catalog}.{database}"

    def create(self) -> None:
        """Create the database and the table where they are missing."""
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {self._database}")
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
            for field in SCHEMA.fields
        )
        self.spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING iceberg"
            f" PARTITIONED BY ({', '.join(KEYS)}) TBLPROPERTIES ({properties()})"
        )

    def frame(
        self,
        types: Collection[MetadataType],
        columns: Sequence[str] = COLUMNS,
        where: Filter | None = None,
    ) -> DataFrame:
        """Return columns of the units of these types that match a filter; RequestError."""
        frame = self.spark.table(self.name)
        condition = type_condition(types)
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown or not columns:
            raise RequestError(f"no columns of a unit: {', '.join(unknown) or 'an empty list'}")
        if condition is not None:
            frame = frame.where(filters.sql(condition))
        if where is not None:
            frame = frame.where(filters.sql(where))
        return frame.select(*columns)

    def read(
        self,
        types: Collection[MetadataType],
        columns: Sequence[str] = COLUMNS,
        where: Filter | None = None,
    ) -> list[dict[str, Any]]:
        """Return columns of the units of these types that match a filter; RequestError.

        `units` of the result of all columns are MetadataUnit.of_row(row).
        """
        return [row.asDict() for row in self.frame(types, columns, where).collect()]

    def modify(self) -> Modify:
        """Return a modification, which is one commit when it is executed.

        The commit fails if another one has changed the same keys since this call: read afterwards.
        """
        return Modify(self, self.version())

    def version(self) -> int | None:
        """Return the id of the current snapshot; None before the first one."""
        rows = self.spark.sql(f"SELECT snapshot_id FROM {self.name}.refs WHERE name = 'main'").collect()
        return int(rows[0][0]) if rows else None

    def has_changed(self, since: int | None) -> bool:
        """Return whether a modification has been executed since a version."""
        return self.version() != since


class Modify:
    """Operations that are executed in their order, as one commit of the table.

    `since` is the version that the commit is validated from; None for a table without a snapshot.
    """

    def __init__(self, store: Store, since: int | None = None) -> None:
        self._store = store
        self._since = since
        self._operations: list[Operation] = []
        self._purge = False

    def overwrite(self, units: Iterable[MetadataUnit]) -> Self:
        """Replace all units that have a key of the given ones; RequestError after `purge`."""
        listed = list(units)
        if not listed:
            raise RequestError("an overwrite has no units; delete removes keys")
        frame = self._store.spark.createDataFrame([unit.row() for unit in listed], SCHEMA)
        return self.overwrite_frame(frame, {unit.key for unit in listed})

    def overwrite_frame(self, frame: DataFrame, keys: Iterable[Key]) -> Self:
        """Replace all units of these keys by a frame, which has the columns of SCHEMA and no other keys."""
        return self._add(Overwrite(frozenset(keys), frame))

    def delete(self, where: Filter, types: Collection[MetadataType]) -> Self:
        """Delete units by a filter on keys: those of all types, or tables' own units; RequestError.

        Units of the other types are in files of their segment: overwrite its key.
        """
        other_columns = sorted(set(filters.columns(where)) - set(KEYS))
        if other_columns:
            raise RequestError(f"a delete filters by {', '.join(KEYS)}, not by {', '.join(other_columns)}")
        if set(types) == {model.TABLE}:
            where = filters.all_of(where, filters.equal("metadata_key", GENERAL_INFO))
        elif set(types) != {MetadataType.ALL}:
            raise RequestError(f"a delete takes the types ALL or TABLE, not {_names(types)}")
        return self._add(Delete(where))

    def purge(self) -> Self:
        """Delete all units; RequestError where there are other operations."""
        if self._operations or self._purge:
            raise RequestError("purge cannot be combined with other operations")
        self._purge = True
        return self

    def execute(self) -> int | None:
        """Commit the operations and return the version; ConflictError, UnknownCommitError.

        Without operations there is no commit.
        """
        if self._purge:
            empty = self._store.spark.createDataFrame([], SCHEMA)
            empty.writeTo(self._store.name).overwrite(spark_functions.lit(True))
        elif self._operations:
            self._overwrite(*self._plan())
        return self._store.version()

    def _overwrite(self, frame: DataFrame, condition: Filter) -> None:
        writer = frame.writeTo(self._store.name).option("isolation-level", "serializable")
        if self._since is not None:
            writer = writer.option("validate-from-snapshot-id", str(self._since))
        try:
            writer.overwrite(spark_functions.expr(filters.sql(condition)))
        except (PySparkException, Py4JError) as error:
            raise commit_error(error, self._store.name) from None

    def _add(self, operation: Operation) -> Self:
        if self._purge:
            raise RequestError("purge cannot be combined with other operations")
        self._operations.append(operation)
        return self

    def _plan(self) -> tuple[DataFrame, Filter]:
        """Return the rows that the operations leave, and what they replace."""
        frame = self._store.spark.createDataFrame([], SCHEMA)
        for step in steps(self._operations):
            written = step.frame
            if step.replaced is not None:
                written = written.where(f"NOT ({filters.sql(step.replaced)})")
            frame = frame.union(written)
        return frame, condition(self._operations)


def commit_error(error: Exception, name: str) -> Exception:
    """Return a ConflictError or an UnknownCommitError for an error of Spark that is one, else the error."""
    text = str(error)
    if _UNKNOWN in text:
        return UnknownCommitError(f"the commit of {name} was not confirmed; it may have been written")
    if any(conflict in text for conflict in _CONFLICTS):
        return ConflictError(f"{name} was changed by another run, nothing was written; retry")
    return error


@dataclass(frozen=True)
class Step:
    """A frame of which rows are written, without those that a later operation replaces or deletes."""

    frame: DataFrame
    replaced: Filter | None


def steps(operations: Sequence[Operation]) -> list[Step]:
    """Return what is written of each overwrite, in order."""
    written = []
    for number, operation in enumerate(operations):
        if isinstance(operation, Overwrite):
            later = operations[number + 1 :]
            written.append(Step(operation.frame, condition(later) if later else None))
    return written


def condition(operations: Sequence[Operation]) -> Filter:
    """Return the filter that matches every unit which operations replace or delete."""
    keys = {key for operation in operations if isinstance(operation, Overwrite) for key in operation.keys}
    deleted = [operation.filter for operation in operations if isinstance(operation, Delete)]
    return filters.any_of(*_of_keys(keys), *deleted)


def _of_keys(keys: Collection[Key]) -> list[Filter]:
    """Return filters of keys, short ones: tables of the same keys share one, and so do keys of a table."""
    by_table: dict[tuple[str, str, str], set[str]] = {}
    for key in keys:
        by_table.setdefault(key[:3], set()).add(key.metadata_key)
    tables: dict[tuple[str, str, frozenset[str]], list[str]] = {}
    for (plugin, workspace, table), names in by_table.items():
        tables.setdefault((plugin, workspace, frozenset(names)), []).append(table)
    return [
        filters.all_of(
            filters.equal("storage_plugin", plugin),
            filters.equal("workspace", workspace),
            filters.is_in("table_name", sorted(names)),
            filters.is_in("metadata_key", sorted(metadata_keys)),
        )
        for (plugin, workspace, metadata_keys), names in sorted(
            tables.items(), key=lambda item: (item[0][:2], sorted(item[0][2]))
        )
    ]


def type_condition(types: Collection[MetadataType]) -> Filter | None:
    """Return the filter of types, None for all; RequestError for none, or for NONE."""
    if not types:
        raise RequestError(f"a read needs metadata types: {_names([MetadataType.ALL, *model.UNIT_TYPES])}")
    unsupported = set(types) - model.UNIT_TYPES - {MetadataType.ALL}
    if unsupported:
        raise RequestError(f"a read does not support the types {_names(unsupported)}")
    if MetadataType.ALL in types or set(types) == model.UNIT_TYPES:
        return None
    if set(types) == {model.TABLE}:
        # The partition key prunes files, which the type would not.
        return filters.equal("metadata_key", GENERAL_INFO)
    return filters.is_in("metadata_type", sorted(types))


def _names(types: Iterable[MetadataType]) -> str:
    return ", ".join(sorted(types))
