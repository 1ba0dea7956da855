"""The actions of all runs in an Iceberg table; the next plan reads when each was done last."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from lakehouse.census import job, store
from lakehouse.census.store import DATABASE
from lakehouse.upkeep.executor import DONE, Result

_TYPES = {
    **dict.fromkeys(
        ("finished_at", "files_before", "bytes_before", "files_after", "bytes_after"), LongType()
    ),
    **dict.fromkeys(("scan_before", "scan_after", "seconds"), DoubleType()),
}
_COLUMNS = (
    "finished_at", "table", "format", "action", "policy", "reason", "outcome", "files_before", "bytes_before",
    "files_after", "bytes_after", "scan_before", "scan_after", "seconds", "error",
)  # fmt: skip
_NAMES = {"table": "table_name"}
_SCHEMA = StructType([
    StructField(_NAMES.get(name, name), _TYPES.get(name, StringType())) for name in _COLUMNS
])  # fmt: skip


class Records:
    """The table `upkeep` beside the units of the census."""

    def __init__(self, spark: SparkSession, catalog: str = "iceberg") -> None:
        self._spark, self.name = spark, f"{catalog}.{DATABASE}.upkeep"

    def last(self) -> dict[tuple[str, str], int]:
        """Return when each action was done last, in milliseconds since 1970, by table and action."""
        if not self._spark.catalog.tableExists(self.name):
            return {}
        rows = self._spark.sql(
            f"SELECT table_name, action, max(finished_at) FROM {self.name} WHERE outcome = '{DONE}'"
            " GROUP BY table_name, action"
        )
        return {(row[0], row[1]): row[2] for row in rows.collect()}

    def add(self, results: Sequence[Result], time_ms: int) -> None:
        """Add the results of a run."""
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in _SCHEMA.fields)
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}) USING iceberg"
            f" TBLPROPERTIES ({store.properties()})"
        )
        documents = [{**result.document(), "finished_at": time_ms} for result in results]
        rows = [tuple(document[name] for name in _COLUMNS) for document in documents]
        self._spark.createDataFrame(rows, _SCHEMA).coalesce(1).writeTo(self.name).append()
        job.expire(self._spark, self.name)
