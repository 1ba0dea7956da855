"""The lakehouse as a person meets it: one object that finds every table by its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar

import duckdb
import polars
import pyarrow as pa
from deltalake import write_deltalake
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table as IcebergTable

from lakehouse_clients import delta, file_io, metastore
from lakehouse_clients.catalog import Catalog
from lakehouse_clients.errors import ClientError, refusals_in_one_line
from lakehouse_clients.names import Name, require_columns_of_hive, split_query
from lakehouse_clients.settings import USER_VARIABLE, Settings

_FILE_IO = f"{file_io.__name__}.{file_io.HdfsFileIO.__name__}"


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _plainly(method: Callable[Concatenate[Lake, _P], _R]) -> Callable[Concatenate[Lake, _P], _R]:
    """Say in one line what HDFS refuses."""

    @wraps(method)
    def plain(self: Lake, /, *arguments: _P.args, **options: _P.kwargs) -> _R:
        with refusals_in_one_line(self.settings.group):
            return method(self, *arguments, **options)

    return plain


class Lake:
    """One catalog for one user; `connect()` makes it.

    Tables are named `iceberg.database.table` or `delta.database.table`. Rows come as Arrow: a `pyarrow.Table`
    of n rows by the asked columns, all of it in memory. Timestamps have microseconds, and those of a moment
    (TIMESTAMP in Spark, TIMESTAMP WITH TIME ZONE in Trino) are in UTC; decimals keep their scale.

    What a person can mend is a ClientError of one line, a refusal of HDFS among it. What a library refuses by
    itself comes as that library says it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __repr__(self) -> str:
        return f"Lake({self.settings.metastore} as {self.settings.user})"

    # --- What the libraries give ---

    @cached_property
    def iceberg(self) -> Catalog:
        """PyIceberg's catalog: `lake.iceberg.load_table("database.table")` and all that PyIceberg can do."""
        settings = self.settings
        return Catalog(
            "iceberg",
            **{
                "uri": settings.metastore,
                "warehouse": f"{settings.warehouse}/iceberg",
                # Who says no name may change nothing. No group follows it: HDFS knows the user's.
                "ugi": f"{settings.user}:",
                "py-io-impl": _FILE_IO,
                **settings.hdfs,
            },
        )

    @_plainly
    def delta(self, name: str, version: int | None = None) -> delta.Table:
        """Return delta-rs' table of `database.table`, as of a version (a number of the table's history).

        To read it, use `arrow`, which reads a table right or refuses it. Raises ClientError if there is no
        such Delta table.
        """
        return delta.load(self._delta_path(Name.parse(f"delta.{name}")), self.settings.hdfs, version)

    def duckdb(self, *names: str) -> duckdb.DuckDBPyConnection:
        """Return a new in-memory DuckDB that has each named table, read once, as `"format.database.table"`.

        Its time zone is UTC. `sql` does the naming by itself.
        """
        # Nodes have no way to DuckDB's extensions: what needs one shall say so instead of waiting for it.
        connection = duckdb.connect(config={"autoinstall_known_extensions": False})
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        for name in names:
            connection.register(name, self.arrow(name))
        return connection

    # --- Rows ---

    @_plainly
    def arrow(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 (what PyArrow, Polars and PyIceberg call it)
        version: int | None = None,
    ) -> pa.Table:
        """Return a table's rows: all, or `columns` of those for which the SQL condition `filter` holds.

        `version` is a snapshot id of an Iceberg table, a version of a Delta table. Raises ClientError if
        there is no such table, or if it has a Delta feature that might be read wrongly.
        """
        parsed = Name.parse(name)
        if parsed.format == "delta":
            table = self.delta(f"{parsed.database}.{parsed.table}", version)
            delta.require_readable(name, table)
            return delta.read(table, columns, filter)
        scan = self._iceberg_table(parsed).scan(
            row_filter=filter or AlwaysTrue(), selected_fields=tuple(columns or ("*",)), snapshot_id=version
        )
        rows = scan.to_arrow()
        return rows.select(list(columns)) if columns else rows

    def polars(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: str | None = None,  # noqa: A002 (as in arrow)
        version: int | None = None,
    ) -> polars.DataFrame:
        """Return what `arrow` returns as a Polars DataFrame of the same shape."""
        frame = polars.from_arrow(self.arrow(name, columns, filter, version))
        assert isinstance(frame, polars.DataFrame)  # noqa: S101 (a table never becomes a Series)
        return frame

    def sql(self, query: str) -> pa.Table:
        """Return the answer of DuckDB to a query over tables of both formats.

        Each table is read as a whole first: narrow a large one down with `arrow`, and register that in
        `duckdb()`.
        """
        rewritten, names = split_query(query)
        with self.duckdb(*map(str, names)) as connection:
            return connection.sql(rewritten).to_arrow_table()

    # --- Writing ---

    @_plainly
    def create_database(self, name: str) -> str:
        """Create `iceberg.database` or `delta.database` unless it exists; return its folder.

        The prefix says in which folder it lies, beside those of the other engines. A database holds tables of
        both formats; `create` puts them into its folder. Raises ClientError for another kind of name.
        """
        parsed = Name.parse(f"{name}.t")
        folder = f"{self.settings.warehouse}/{parsed.format}/{parsed.database}"
        self.iceberg.create_namespace_if_not_exists(parsed.database, {"location": folder})
        return str(self.iceberg.load_namespace_properties(parsed.database)["location"])

    @_plainly
    def create(self, name: str, data: pa.Table) -> int:
        """Create a table with these columns and rows, seen by every engine; return its first version.

        It lies in its database's folder. Raises ClientError for columns that differ in capitals alone, and
        what the library raises if the table exists.
        """
        parsed = Name.parse(name)
        require_columns_of_hive(parsed, data.column_names)
        if parsed.format == "iceberg":
            self.iceberg.create_table(parsed.identifier, schema=data.schema)
            return self.append(name, data)
        with self.iceberg.metastore() as client:
            path = metastore.new_table_path(client, parsed)
            write_deltalake(
                path,
                data,
                mode="error",
                storage_options=dict(self.settings.hdfs),
                writer_properties=delta.writer_properties(data),
            )
            client.create_table(metastore.delta_row(parsed, path, self.settings.user))
        return self.delta(f"{parsed.database}.{parsed.table}").version()

    def append(self, name: str, data: pa.Table) -> int:
        """Add rows in one commit; return its version. The columns must be the table's, by name and type."""
        return self._write(name, data, "append")

    def overwrite(self, name: str, data: pa.Table) -> int:
        """Put these rows in place of all others in one commit; return its version."""
        return self._write(name, data, "overwrite")

    @_plainly
    def _write(self, name: str, data: pa.Table, mode: Literal["append", "overwrite"]) -> int:
        parsed = Name.parse(name)
        if parsed.format == "delta":
            folder = self.delta(f"{parsed.database}.{parsed.table}")
            delta.require_readable(name, folder)
            write_deltalake(folder, data, mode=mode, writer_properties=delta.writer_properties(data))
            return folder.version()
        table = self._iceberg_table(parsed)
        write: Callable[[pa.Table], None] = getattr(table, mode)
        write(data)
        snapshot = table.current_snapshot()
        return snapshot.snapshot_id if snapshot else 0

    # --- Where tables are ---

    @_plainly
    def tables(self) -> list[str]:
        """Return the names of all Iceberg and Delta tables, sorted."""
        with self.iceberg.metastore() as client:
            return sorted(
                str(Name(kind, database, table))
                for database in client.get_all_databases()
                for table, kind in metastore.formats(client, database).items()
            )

    def _iceberg_table(self, name: Name) -> IcebergTable:
        try:
            return self.iceberg.load_table(name.identifier)
        except NoSuchTableError as error:
            raise ClientError(f"no Iceberg table {name}: {error}", "print(lake.tables())") from None

    def _delta_path(self, name: Name) -> str:
        with self.iceberg.metastore() as client:
            return delta.location(metastore.row(client, name))


def connect(settings: Settings) -> Lake:
    """Make hdfs-native and delta-rs speak as the user of these settings, and return the lake.

    They read the environment, so a process has one user for its whole life: ClientError for a second one.
    """
    spoken_for = os.environ.get(USER_VARIABLE)
    if spoken_for not in (None, settings.user):
        raise ClientError(
            f"this process speaks to HDFS as {spoken_for} and cannot be {settings.user} too",
            f"use another process, or set {USER_VARIABLE} before the first connect()",
        )
    os.environ[USER_VARIABLE] = settings.user
    if settings.hadoop_conf_dir:
        os.environ.setdefault("HADOOP_CONF_DIR", settings.hadoop_conf_dir)
    return Lake(settings)
