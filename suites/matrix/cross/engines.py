"""Every engine behind one face: send SQL where it speaks SQL, and read a table as rows of Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from suites.testbed.databases import Table
from suites.testbed.engines.facade import Facade, Row
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, HIVE_PARQUET, ICEBERG, Format
from suites.testbed.sessions import not_deployed

SPARK, TRINO, FLINK, PYICEBERG, DELTA_RS, DUCKDB, POLARS = (
    "spark", "trino", "flink", "pyiceberg", "delta-rs", "duckdb", "polars",
)  # fmt: skip
SQL_ENGINES = (SPARK, TRINO, FLINK)
READERS: Mapping[Format, tuple[str, ...]] = {
    ICEBERG: (SPARK, TRINO, FLINK, PYICEBERG, DUCKDB, POLARS),
    DELTA: (SPARK, TRINO, DELTA_RS, DUCKDB, POLARS),
    # Flink reads no lists of nested values in the Parquet of a Hive table, and an empty list as null.
    HIVE_PARQUET: (SPARK, TRINO),
}
# What follows CREATE TABLE in an engine whose catalog makes tables of more than one format.
CLAUSES = {
    (DELTA.name, SPARK): " USING delta",
    (HIVE_PARQUET.name, SPARK): " STORED AS PARQUET",
    (HIVE_PARQUET.name, TRINO): " WITH (format = 'PARQUET')",
    (HIVE_PARQUET.name, FLINK): " WITH ('connector' = 'hive', 'hive.storage.file-format' = 'parquet')",
}


class Missing(Facade):
    """An engine that the cluster does not have: a test that asks it is skipped, and no other."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.statements = []

    def sql(self, statement: str) -> list[Row]:
        """Skip the test."""
        self.statements.append(statement)
        not_deployed(self.engine)


@dataclass
class Engines:
    """One session of each engine, and the Python clients (`lakehouse_clients`)."""

    spark: Spark
    trino: Facade
    flink: Facade
    clients: Any

    def of(self, engine: str) -> Facade:
        """Return the session of an SQL engine."""
        session: Facade = getattr(self, engine)
        return session

    def sql(self, engine: str, statement: str) -> list[Row]:
        """Run a statement on an SQL engine; return its rows."""
        return self.of(engine).sql(statement)

    def refuses(self, engine: str, statement: str, reason: str) -> str:
        """Return the line of the error that holds `reason`, a regular expression; fail if none does."""
        return self.of(engine).refuses(statement, reason)

    def read(self, engine: str, table: Table, columns: Sequence[str] = ()) -> list[Row]:
        """Return the rows of a table as an engine reads them, in any order; all columns or these."""
        if engine in SQL_ENGINES:
            return self.rows(engine, f"SELECT {', '.join(columns) or '*'} FROM {table.full(engine)}")
        arrow_table = self._arrow(engine, table)
        return _rows(arrow_table.select(list(columns)) if columns else arrow_table)

    def rows(self, engine: str, query: str) -> list[Row]:
        """Return the rows of a query of an SQL engine as Python values."""
        if engine == SPARK:
            # Rows of Spark Connect hold instants without their zone; Arrow keeps it.
            return _rows(self.spark.frame(query).toArrow())
        return [tuple(row) for row in self.sql(engine, query)]

    def columns(self, engine: str, table: Table) -> list[str]:
        """Return the names of a table's columns, in order, as an engine sees them."""
        if engine == SPARK:
            return list(self.spark.frame(f"SELECT * FROM {table} LIMIT 0").columns)
        if engine in SQL_ENGINES:
            return [str(row[0]) for row in self.sql(engine, f"DESCRIBE {table.full(engine)}")]
        return list(self._arrow(engine, table).column_names)

    def _arrow(self, engine: str, table: Table) -> pa.Table:
        qualified_name = f"{table.format}.{table.short}"
        if engine == PYICEBERG:
            return self.clients.iceberg.load_table(table.short).scan().to_arrow()
        if engine == DELTA_RS:
            return self.clients.arrow(qualified_name)
        if engine == DUCKDB:
            return self.clients.sql(f"SELECT * FROM {qualified_name}")
        return self.clients.polars(qualified_name).to_arrow()


def _rows(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]
