"""The source files become tables of a format, by Spark: each in one commit, or left as it is."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from suites.matrix.tpch.source import SCALE, Source
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import Format
from suites.testbed.namenode import NameNode, NameNodeError

# A table says what it was made from, and how. The mark is part of the commit that writes the rows.
MARK = "lakehouse.source"
_CREATE = """
CREATE OR REPLACE TABLE {table} USING {format} TBLPROPERTIES ('{key}' = '{mark}')
AS SELECT * FROM parquet.`{uri}`
""".strip()


@dataclass(frozen=True)
class Target:
    """The database of a format; its name is fixed, so that a second run finds the tables and people can."""

    format: Format

    @property
    def database(self) -> str:
        """Name of the database, without its catalog."""
        return f"tpch_{self.format}"

    @property
    def full_name(self) -> str:
        """Name of the database in Spark."""
        return f"{self.format.catalogs['spark']}.{self.database}"

    @property
    def folder(self) -> str:
        """Place of the database below the warehouse."""
        return f"{self.format.folder}/{self.database}"


@dataclass
class Landing:
    """The folder in HDFS from which Spark reads the source files."""

    namenode: NameNode
    endpoints: Endpoints

    @property
    def folder(self) -> str:
        """Path of the folder."""
        return f"{self.endpoints.root}/landing/tpch/sf{SCALE}"

    def put(self, spark: Spark, source: Source) -> None:
        """Bring the files to HDFS, by way of the Connect server; one of the same length is left alone."""
        for table in source.tables:
            local, path = source.file(table), f"{self.folder}/{table}.parquet"
            if self._length(path) != local.stat().st_size:
                spark.session.copyFromLocalToFs(str(local), path)

    def uri(self, table: str) -> str:
        """Return the address of a table's file."""
        return self.endpoints.uri(f"{self.folder}/{table}.parquet")

    def _length(self, path: str) -> int | None:
        try:
            return int(self.namenode.status(path)["length"])
        except NameNodeError as error:
            if "does not exist" in str(error):
                return None
            raise


def mark(checksum: str) -> str:
    """Return what says which rows a table holds and which statement wrote them."""
    return f"{checksum[:16]} {hashlib.sha256(_CREATE.encode()).hexdigest()[:8]}"


def stale(spark: Spark, target: Target, source: Source) -> list[str]:
    """Return the tables that are missing, or differ from the source files."""
    existing = {name for _, name, *_ in spark.sql(f"SHOW TABLES IN {target.full_name}")}
    return [
        table
        for table in source.tables
        if table not in existing
        or _mark(spark, f"{target.full_name}.{table}") != mark(source.checksums[table])
    ]


def _mark(spark: Spark, table: str) -> str | None:
    properties: dict[str, str] = dict(spark.sql(f"SHOW TBLPROPERTIES {table}"))
    return properties.get(MARK)


def write(spark: Spark, target: Target, table: str, checksum: str, landing: Landing) -> None:
    """Make a table from its source file, in the place of one that may be there."""
    spark.sql(
        _CREATE.format(
            table=f"{target.full_name}.{table}",
            format=target.format,
            key=MARK,
            mark=mark(checksum),
            uri=landing.uri(table),
        )
    )


def load(spark: Spark, target: Target, source: Source, landing: Landing) -> list[str]:
    """Load what is stale in the database of a format, from files that have landed.

    Returns the names of the tables that were written.
    """
    location = f"{landing.endpoints.warehouse}/{target.folder}"
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {target.full_name} LOCATION '{location}'")
    tables = stale(spark, target, source)
    for table in tables:
        write(spark, target, table, source.checksums[table], landing)
    return tables
