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
_NUMBERS = ("files", "bytes")
_FINDING = StructType([
    StructField(name, LongType() if name in _NUMBERS else StringType(), nullable=False)
    for name in TableFinding.__dataclass_fields__
])  # fmt: skip
_SIZES = (
    "measured_at BIGINT NOT NULL, storage_plugin STRING NOT NULL, workspace STRING NOT NULL,"
    " owner STRING NOT NULL, tables BIGINT NOT NULL, files BIGINT NOT NULL, bytes BIGINT NOT NULL"
)


class Derived:
    """The tables `findings` and `sizes`, made of the view or table `units`."""

    def __init__(self, spark: SparkSession, units: str, catalog: str = "iceberg") -> None:
        self._spark = spark
        self._units = units
        self.findings, self.sizes = (f"{catalog}.{DATABASE}.{name}" for name in ("findings", "sizes"))

    def rows(self, query: str) -> list[Mapping[str, Any]]:
        """Return the rows of a query."""
        return [row.asDict() for row in self._spark.sql(query).collect()]

    def write(self, findings: Iterable[TableFinding], now: int) -> None:
        """Replace the findings, and add the sizes of `now`, in milliseconds since 1970."""
        rows = [tuple(vars(finding).values()) for finding in findings]
        self._spark.createDataFrame(rows, _FINDING).createOrReplaceTempView(_NEW_FINDINGS)
        properties = f"USING iceberg TBLPROPERTIES ({store.properties()})"
        self._spark.sql(
            f"CREATE OR REPLACE TABLE {self.findings} {properties} AS SELECT * FROM {_NEW_FINDINGS}"
        )
        self._spark.sql(f"CREATE TABLE IF NOT EXISTS {self.sizes} ({_SIZES}) {properties}")
        self._spark.sql(f"INSERT INTO {self.sizes} {report.sizes_of_run(self._units, now)}")

    def history(self) -> list[Size]:
        """Return the sizes of the last runs, the oldest first; none before the first run."""
        query = (
            "SELECT measured_at, sum(tables) AS tables, sum(files) AS files, sum(bytes) AS bytes"
            f" FROM {self.sizes} GROUP BY measured_at ORDER BY measured_at DESC LIMIT {MOST_RUNS}"
        )
        if not self._spark.catalog.tableExists(self.sizes):
            return []
        return [Size(**row) for row in reversed(self.rows(query))]
