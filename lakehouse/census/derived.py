"""Tables that a census makes of its units, for every engine: the findings, and the sizes of each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakehouse.census import report, store
from lakehouse.census.growth import Size
from lakehouse.census.report import TableFinding
from lakehouse.census.store import DATABASE

# Runs that growth is read from: a year of daily ones.
MOST_RUNS = 400
_NEW_FINDINGS = "census_findings"
_NUMBERS = ("files", "size_bytes")
_FINDING = StructType([
    StructField(name, LongType() if name in _NUMBERS else StringType(), nullable=False)
    for name in TableFinding.__dataclass_fields__
])  # fmt: skip
# `version` is the snapshot of the units that a row, and the findings, are made of.
_SIZES = (
    "measured_at BIGINT NOT NULL, version BIGINT, storage_plugin STRING NOT NULL, workspace STRING NOT NULL,"
    " owner STRING NOT NULL, table_count BIGINT NOT NULL, files BIGINT NOT NULL, size_bytes BIGINT NOT NULL,"
    " free_bytes BIGINT"
)
_PROPERTIES = f"USING iceberg TBLPROPERTIES ({store.properties()})"


class Derived:
    """The tables `findings` and `sizes` beside the units."""

    def __init__(self, spark: SparkSession, catalog: str = "iceberg") -> None:
        self._spark = spark
        self.findings, self.sizes = (f"{catalog}.{DATABASE}.{name}" for name in ("findings", "sizes"))

    def rows(self, query: str) -> list[Mapping[str, Any]]:
        """Return the rows of a query."""
        return [row.asDict() for row in self._spark.sql(query).collect()]

    def version(self) -> int | None:
        """Return the version of the units that the last sizes are made of; None before the first ones."""
        if not self._spark.catalog.tableExists(self.sizes):
            return None
        rows = self.rows(f"SELECT max_by(version, measured_at) AS version FROM {self.sizes}")
        return rows[0]["version"]  # type: ignore[no-any-return]

    def write_findings(self, findings: Iterable[TableFinding]) -> None:
        """Replace the findings."""
        rows = [tuple(vars(finding).values()) for finding in findings]
        self._spark.createDataFrame(rows, _FINDING).createOrReplaceTempView(_NEW_FINDINGS)
        self._spark.sql(
            f"CREATE OR REPLACE TABLE {self.findings} {_PROPERTIES} AS SELECT * FROM {_NEW_FINDINGS}"
        )

    def add_sizes(self, units: str, measured_at: int, version: int | None, free_bytes: int | None) -> None:
        """Add the sizes of a run from a table of units, at a time in milliseconds since 1970."""
        self._spark.sql(f"CREATE TABLE IF NOT EXISTS {self.sizes} ({_SIZES}) {_PROPERTIES}")
        query = report.sizes_of_run(units, measured_at, version, free_bytes)
        self._spark.sql(f"INSERT INTO {self.sizes} {query}")

    def history(self) -> list[Size]:
        """Return the sizes of the last runs, the oldest first; none before the first run."""
        if not self._spark.catalog.tableExists(self.sizes):
            return []
        sums = ", ".join(map(report.total, ("table_count", "files", "size_bytes")))
        query = (
            f"SELECT measured_at, {sums}, max(free_bytes) AS free_bytes"
            f" FROM {self.sizes} GROUP BY measured_at ORDER BY measured_at DESC LIMIT {MOST_RUNS}"
        )
        return [Size(**row) for row in reversed(self.rows(query))]
