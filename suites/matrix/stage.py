"""The tables before an operation: Spark makes them, one for each cell that changes its table."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from suites.matrix.cells import Cell, Expected
from suites.matrix.operations import STARTS
from suites.matrix.recipes.recipe import Names
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import Format
from suites.testbed.namenode import NameNode
from suites.testbed.tables import history

STRAY = "part-00000-nobodys.parquet"
# Old enough for every engine to remove it.
_STRAY_FROM = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@dataclass
class Stage:
    """Prepares the tables of one engine with a Spark session of its own.

    `written` are the tables to which the engine has added rows.
    """

    engine: str
    spark: Spark
    databases: Databases
    namenode: NameNode
    endpoints: Endpoints
    written: list[Table] = field(default_factory=list)
    _shared: dict[tuple[Format, str], Table] = field(default_factory=dict)

    def table(self, cell: Cell) -> Table:
        """Return a table as the cell's operation wants to find it.

        What is only read, and what is expected to be refused, shares a table with others of its kind.
        """
        operation, fmt = cell.operation, cell.format
        if cell.expected in {Expected.WORKS, Expected.WRONG} and operation.changes:
            return self._new(fmt, f"{self._prefix(fmt)}_{operation.slug.replace('-', '_')}", operation.start)
        key = (fmt, operation.start)
        if key not in self._shared:
            name = f"{self._prefix(fmt)}_from_{operation.start.replace(' ', '_')}"
            self._shared[key] = self._new(fmt, name, operation.start)
        return self._shared[key]

    def names(self, cell: Cell, table: Table) -> Names:
        """Return what the steps of a cell may name."""
        copy = self.copy(cell)
        version, committed = self._first_version(cell, table)
        return Names(
            table=table.full(cell.engine),
            short=table.short,
            database=table.database,
            name=table.name,
            uri=table.uri,
            copy=copy.full(cell.engine),
            copy_short=copy.short,
            copy_uri=copy.uri,
            view=f"{table.full(cell.engine)}_view",
            catalog=table.format.catalogs.get(cell.engine, ""),
            version=version,
            committed=committed,
            committed_ms=_milliseconds(committed) if committed else "",
        )

    def copy(self, cell: Cell) -> Table:
        """Return the other table that the cell's steps may make."""
        return self.databases.table(cell.format, f"{self._prefix(cell.format)}_copy")

    def spoilt(self, cell: Cell, table: Table) -> None:
        """Give the next cells another shared table: this one was changed, against all expectations."""
        key = (cell.format, cell.operation.start)
        if self._shared.get(key) == table:
            del self._shared[key]
            self.spark.sql(f"DROP TABLE IF EXISTS {table}")

    def shared(self) -> list[tuple[str, Table]]:
        """Return the tables that were to stay unchanged, with how they began."""
        return [(start, table) for (_, start), table in self._shared.items() if STARTS[start]]

    def _prefix(self, fmt: Format) -> str:
        engine = self.engine.replace("-", "")
        return f"{engine}_{fmt.prefix}" if fmt.prefix else engine

    def _new(self, fmt: Format, name: str, start: str) -> Table:
        table = self.databases.table(fmt, name)
        # In a Hive view Trino resolves only names without Spark's catalog; an Iceberg view needs the catalog.
        viewed = table.short if fmt.catalogs["spark"] == "spark_catalog" else str(table)
        for statement in STARTS[start]:
            self.spark.sql(statement.format(table=table, clause=fmt.clause, viewed=viewed))
        located = self.databases.found(table)
        if start == "stray file":
            self._put_stray_file(located)
        return located

    def _put_stray_file(self, table: Table) -> None:
        folder = f"{table.path}/data" if table.format.family == "iceberg" else table.path
        owner = self.namenode.status(folder)["owner"]
        path = f"{folder}/{STRAY}"
        self.namenode.create(path, owner, self.endpoints.address_of)
        stamp = str(int(_STRAY_FROM.timestamp() * 1000))
        self.namenode.webhdfs("PUT", "SETTIMES", path, owner, modificationtime=stamp, accesstime=stamp)

    def _first_version(self, cell: Cell, table: Table) -> tuple[str, str]:
        if cell.operation.start != "history" or not table.format.history:
            return "", ""
        first, *_ = history(self.spark, table)
        return str(first.id), first.committed


def _milliseconds(moment: str) -> str:
    stamp = dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC)
    return str(round(stamp.timestamp() * 1000))
