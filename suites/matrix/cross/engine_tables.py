"""Tables of the proofs: each is measured at its location and dropped, whichever engine creates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hive_metastore.ttypes import NoSuchObjectException

from plugins.module_utils.lakehouse import table_format
from suites.matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, SPARK, TRINO, Engines
from suites.testbed import metastore
from suites.testbed.databases import Table
from suites.testbed.formats import DELTA, ICEBERG, Format
from suites.testbed.tables import Tables


class EngineTables(Tables):
    """A maker of what any engine may have made, in whatever format."""

    def location(self, table: Table) -> str | None:
        """Return the folder of a table in HDFS; None if there is no such table."""
        return self.databases.found(table).path if self._entry(table) else None

    def close(self) -> None:
        """Note where the blocks of every table that is still there are, then drop it."""
        for table in self._made:
            try:
                if location := self.location(table):
                    self.ledger.measure(table.short, table.format.name, location)
            finally:
                self._drop(table)

    def _drop(self, table: Table) -> None:
        """Drop it with the format's engine, and by the metastore what is not of that format."""
        if self._kind(table) == table.format.name:
            self.spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        elif self.location(table):
            with self._metastore("hdfs") as client:
                client.drop_table(table.database, table.name, True)

    def _kind(self, table: Table) -> str | None:
        entry = self._entry(table)
        return table_format.of(entry.tableType, entry.parameters) if entry else None

    def _entry(self, table: Table) -> Any:
        """Return what the metastore knows of a table; None if it knows nothing."""
        with self._metastore("spark") as client:
            try:
                return client.get_table(table.database, table.name)
            except NoSuchObjectException:
                return None

    def _metastore(self, service: str) -> metastore.Connection:
        """Connect as the user of a service."""
        endpoints = self.databases.endpoints
        return metastore.Connection(endpoints.metastore, endpoints.users[service])


# Who can make a table of which format.
MAKERS = (
    *((ICEBERG, maker) for maker in (SPARK, TRINO, FLINK, PYICEBERG)),
    *((DELTA, maker) for maker in (SPARK, DELTA_RS)),
)
# Who makes a table without a format: files in folders, one for each partition.
HIVE_MAKERS: Mapping[str, str] = {
    SPARK: "CREATE TABLE spark_catalog.{} USING parquet PARTITIONED BY (p) AS SELECT 1 AS id, 1 AS p",
    TRINO: "CREATE TABLE hive.{} WITH (partitioned_by = ARRAY['p']) AS SELECT 1 AS id, 1 AS p",
}


@dataclass
class SharedTables:
    """Gives the table that an engine has made, with one row; each is made when it is first asked for."""

    engines: Engines
    makers: Mapping[str, EngineTables]
    _tables: dict[tuple[Format, str], Table] = field(default_factory=dict)

    def __call__(self, fmt: Format, maker: str) -> Table:
        """Return the table of a format by an engine of `MAKERS`."""
        if (fmt, maker) not in self._tables:
            self._tables[fmt, maker] = self._make(fmt, maker)
        return self._tables[fmt, maker]

    def hive(self, maker: str) -> Table:
        """Return a new Hive table by an engine of `HIVE_MAKERS`, under a name for a table of Iceberg."""
        table = self.makers[ICEBERG.name].name()
        self.engines.sql(maker, HIVE_MAKERS[maker].format(table.short))
        return table

    def location(self, table: Table) -> str | None:
        """Return the folder of a table in HDFS; None if there is no such table."""
        return self.makers[table.format.name].location(table)

    def _make(self, fmt: Format, maker: str) -> Table:
        table = self.makers[fmt.name].name()
        if maker in (PYICEBERG, DELTA_RS):
            self.engines.clients.create(f"{fmt}.{table.short}", pa.table({"id": pa.array([1], pa.int32())}))
        else:
            using = f" USING {fmt}" if maker == SPARK else ""
            self.engines.sql(maker, f"CREATE TABLE {table.full(maker)} (id INT){using}")
            self.engines.sql(maker, f"INSERT INTO {table.full(maker)} VALUES (1)")
        return table
