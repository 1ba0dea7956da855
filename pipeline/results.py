"""The rows of the pipeline's tables after a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

# Rows that could not be loaded: `source` (name of the file), `reason`, `raw` (the line as it was).
REJECTED = "iceberg.nycflights.rejected_rows"


@dataclass(frozen=True)
class Written:
    """A table, the source whose rows it holds, and whether this run wrote it or found it complete."""

    table: str
    source: str
    written: bool


@dataclass(frozen=True)
class Result:
    """One table: its rows now, the rows of its source that were set aside, and whether this run wrote it."""

    table: str
    rows: int
    rejected: int
    written: bool


def count(spark: SparkSession, tables: Sequence[Written]) -> list[Result]:
    """Count all tables in one query, which both formats answer from metadata."""
    query = " UNION ALL ".join(
        f"SELECT '{table.table}' AS name, count(*) AS rows FROM {table.table}" for table in tables
    )
    rows = {row["name"]: row["rows"] for row in spark.sql(query).collect()}
    aside = {row["source"]: row["count"] for row in spark.table(REJECTED).groupBy("source").count().collect()}
    return [
        Result(table.table, rows[table.table], aside.get(table.source, 0), table.written) for table in tables
    ]
