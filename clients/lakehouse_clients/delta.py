"""Delta tables: where the metastore says they are, and what may be read of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import ColumnProperties, DeltaTable, QueryBuilder, WriterProperties
from deltalake.fs import DeltaStorageHandler
from deltalake.table import TableMerger, TableOptimizer
from pyarrow import parquet
from pyarrow.fs import PyFileSystem

from lakehouse_clients.arrow import plain
from lakehouse_clients.errors import ClientError

_PROVIDER = "spark.sql.sources.provider"
_MAPPING = "delta.columnMapping.mode"

# Features of readers whose tables delta-rs was seen to read as Spark does, row by row. Whatever else a table
# asks of its readers is refused: a wrong answer costs more than none.
READ_RIGHT = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"})

# deltalake keeps a column's smallest and largest value as floating-point numbers, which hold 15 digits.
_EXACT_DIGITS = 15

# Spark writes instants as INT96. Readers of Arrow count such in nanoseconds unless told otherwise, and
# 64 bits of those reach from 1677 to 2262: an instant beyond comes out as another one.
_INT96 = "INT96"
_MICROSECONDS = "SET datafusion.execution.parquet.coerce_int96 = 'us'"
_FIRST, _LAST = -(2**63) // 1000 + 1, (2**63 - 1) // 1000

# More rows than a table has.
_EVERY_ROW = 2**63 - 1

# The process in which delta-rs has started its threads: they do not live on in a forked child.
_started: list[int] = []


def location(row: Any) -> str:
    """Return the `hdfs://` folder of a Delta table from its row in the metastore.

    The row's own location is a placeholder; the SerDe property `path` is the real one. Raises ClientError if
    the table is of another format, or elsewhere.
    """
    name = f"{row.dbName}.{row.tableName}"
    provider = str(row.parameters.get(_PROVIDER) or row.parameters.get("table_type") or row.tableType)
    provider = provider.lower()
    if provider != "delta":
        raise ClientError(
            f"{name} is not a Delta table but {provider}",
            f"try iceberg.{name}" if provider == "iceberg" else "read it with Spark or Trino",
        )
    path = row.sd.serdeInfo.parameters.get("path") or row.sd.location
    return in_hdfs(name, str(path))


def in_hdfs(name: str, path: str) -> str:
    """Return the folder of a table or a database; ClientError if it is not in HDFS.

    Every member of the group says where his tables are: another's rows must not end on this machine's disk.
    """
    if not path.startswith("hdfs://"):
        raise ClientError(f"{name} is at {path[:200]!r}, which is not in HDFS", "read it with Spark")
    return path


class Optimizer(TableOptimizer):
    """delta-rs' ways to write a table's files anew, with the statistics that `writer_properties` leaves."""

    def compact(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Write small files together."""
        return super().compact(*arguments, **_careful(self.table, options))

    def z_order(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Write rows that are alike into one file."""
        return super().z_order(*arguments, **_careful(self.table, options))


class Table(DeltaTable):
    """delta-rs' table, less the ways of reading that give NULL for every renamed column without a word.

    What it writes has the statistics that `writer_properties` leaves.
    """

    def delete(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Delete the rows for which the predicate is TRUE."""
        return super().delete(*arguments, **_careful(self, options))

    def update(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Update the rows for which the predicate is TRUE."""
        return super().update(*arguments, **_careful(self, options))

    def merge(self, *arguments: Any, **options: Any) -> TableMerger:
        """Return delta-rs' merge."""
        return super().merge(*arguments, **_careful(self, options))

    @property
    def optimize(self) -> Optimizer:
        """Return delta-rs' optimizer."""
        return Optimizer(self)

    def to_pyarrow_dataset(self, *arguments: Any, **options: Any) -> Any:
        """Return deltalake's dataset; ClientError if the table has column mapping.

        `to_pyarrow_table` and `to_pandas` come through here too.
        """
        if self.metadata().configuration.get(_MAPPING, "none") != "none":
            raise ClientError(
                f"{self.table_uri} has column mapping, of which deltalake's dataset knows nothing",
                "read it with lake.arrow, lake.polars or lake.sql",
            )
        exact = {"parquet_read_options": ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")}
        return super().to_pyarrow_dataset(*arguments, **exact | options)

    def to_pyarrow_table(self, *arguments: Any, **options: Any) -> Any:
        """Return deltalake's table, all rows of it; ClientError with `filters`.

        `to_pandas` comes through here too. A file whose log entry lacks a column's smallest and largest value
        is left out by every filter on that column (deltalake 1.6.6).
        """
        if options.get("filters"):
            raise ClientError(
                f"{self.table_uri}: deltalake leaves out rows that a filter should find",
                "read it with lake.arrow(..., filter=...), lake.polars or lake.sql",
            )
        return super().to_pyarrow_table(*arguments, **options)


def load(path: str, options: Mapping[str, str], version: int | None = None) -> Table:
    """Open the table in a folder, as of a version; ClientError in a child forked from a user of delta-rs."""
    if _started and os.getpid() not in _started:
        raise ClientError(
            "delta-rs was used before this process was forked, and would wait for ever",
            "start it with multiprocessing.get_context('spawn')",
        )
    _started.append(os.getpid())
    return Table(path, version=version, storage_options=dict(options))


def refusal(name: str, features: Sequence[str] | None) -> str | None:
    """Say why a table must not be read with delta-rs, from what it asks of its readers; None: it may.

    >>> refusal("db.t", ["deletionVectors", "typeWidening"])
    'db.t asks its readers for typeWidening, which was never seen to be read right by delta-rs'
    """
    if strange := sorted(set(features or ()) - READ_RIGHT):
        return (
            f"{name} asks its readers for {', '.join(strange)}, "
            "which was never seen to be read right by delta-rs"
        )
    return None


def require_readable(name: str, table: DeltaTable) -> None:
    """Raise ClientError if delta-rs would read the table wrongly."""
    if why := refusal(name, table.protocol().reader_features):
        raise ClientError(why, "read it with Spark")


def writer_properties(rows: pa.Table | pa.Schema) -> WriterProperties:
    """Return how to write rows: which columns without their smallest and largest value.

    Of decimals of more than 15 digits deltalake 1.6.6 rounds them; of floating-point columns it omits NaN:
    every engine then skips files that hold what it looks for, and an update by delta-rs replaces NaN where
    the other numbers are equal. A schema does not say where NaN is: all such columns are meant.
    """
    schema = rows.schema if isinstance(rows, pa.Table) else rows
    inexact = [
        field.name
        for field in schema
        if (pa.types.is_decimal(field.type) and field.type.precision > _EXACT_DIGITS)
        or (pa.types.is_floating(field.type) and _has_nan(rows, field.name))
    ]
    without = ColumnProperties(statistics_enabled="NONE")
    return WriterProperties(column_properties=dict.fromkeys(inexact, without))


def _floating(table: DeltaTable) -> list[str]:
    schema = pa.schema(table.schema().to_arrow())
    return [field.name for field in schema if pa.types.is_floating(field.type)]


def _has_nan(rows: pa.Table | pa.Schema, name: str) -> bool:
    return isinstance(rows, pa.Schema) or bool(pc.any(pc.is_nan(rows[name])).as_py())


def _careful(table: DeltaTable, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a call that writes, with `writer_properties` unless the caller has set them.

    ClientError where the call could change instants of rows that it copies.
    """
    far = _of_far_instants(table)
    if far and _has_int96(table, far):
        raise ClientError(
            f"{table.table_uri} has instants before 1678 or after 2261 in files of Spark, which delta-rs"
            " would change in every row that it copies",
            "change it with Spark",
        )
    return {"writer_properties": writer_properties(pa.schema(table.schema().to_arrow())), **options}


def _of_far_instants(table: DeltaTable) -> list[str]:
    """Return the files that may hold instants beyond nanoseconds, by the log: those without an entry too."""
    files = pa.table(table.get_add_actions(flatten=True))
    far = pa.array([False] * files.num_rows, pa.bool_())
    for name in files.column_names:
        if name.startswith(("min.", "max.")) and pa.types.is_timestamp(files.schema.field(name).type):
            number = files[name].cast(pa.timestamp("us")).cast(pa.int64())
            within = pc.and_(pc.greater(number, _FIRST), pc.less(number, _LAST))
            empty = pc.equal(files[f"null_count.{name[4:]}"], files["num_records"])
            far = pc.or_(far, pc.invert(pc.or_(pc.fill_null(within, False), pc.fill_null(empty, False))))
    paths: list[str] = files["path"].filter(far).to_pylist()
    return paths


def _has_int96(table: DeltaTable, paths: Sequence[str]) -> bool:
    """Tell whether one of these files of a table has a column of INT96."""
    files = PyFileSystem(DeltaStorageHandler.from_table(table._table, table._storage_options))
    for path in paths:
        # The log has paths as URLs have them: of a folder `w=it%27s` it says `w=it%2527s`.
        with parquet.ParquetFile(files.open_input_file(unquote(path))) as file:
            schema = file.schema
        if any(schema.column(number).physical_type == _INT96 for number in range(len(schema))):
            return True
    return False


def read(table: DeltaTable, columns: Sequence[str] | None, where: str | None) -> pa.Table:
    """Return rows as Arrow: these columns, and the rows for which the SQL condition `where` holds.

    It goes through DataFusion: deltalake's own `to_pyarrow_table` gives NULL for every renamed column.
    """
    chosen = ", ".join(quoted(column) for column in columns) if columns else "*"
    source = "lake"
    if where and any(column.lower() in where.lower() for column in _floating(table)):
        # No condition passes a limit: compared with a file's smallest and largest value, it would miss NaN.
        source = f"(SELECT * FROM lake LIMIT {_EVERY_ROW}) AS lake"  # noqa: S608 (a constant)
    condition = f" WHERE {where}" if where else ""
    query = f"SELECT {chosen} FROM {source}{condition}"  # noqa: S608 (a reader may read all of it)
    session = QueryBuilder().register("lake", table)
    session.execute(_MICROSECONDS).read_all()
    return plain(session.execute(query).read_all())


def quoted(name: str) -> str:
    """Return a name as SQL writes one that has capitals, blanks or quotes."""
    return '"' + name.replace('"', '""') + '"'
