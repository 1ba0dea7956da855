"""The table formats of the matrix, and what each engine calls them: data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class TableFormat:
    """A format of tables.

    `catalogs` is the catalog by engine: one that is not in it has no SQL for the format. `clause` makes Spark
    create such a table. `file` is Spark's expression for the file from which a row comes. `versions` is its
    query for (version, moment as text) of all commits; empty: there are none. `layouts` is its query for what
    the partitions of a table look like, and `evolved` the answer after `partition evolution`.
    `prefix` keeps apart the tables of formats that share a database.
    """

    name: str
    family: str
    folder: str
    catalogs: Mapping[str, str]
    clause: str
    file: str
    versions: str = ""
    layouts: str = ""
    evolved: tuple[tuple[object, ...], ...] = ()
    prefix: str = ""

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


_HIVE_CATALOGS = {"spark": "spark_catalog", "trino": "hive", "flink": "hive"}

ICEBERG = TableFormat(
    name="iceberg",
    family="iceberg",
    folder="iceberg",
    catalogs={"spark": "iceberg", "trino": "iceberg", "flink": "iceberg"},
    clause="USING iceberg",
    file="_file",
    versions="SELECT snapshot_id, CAST(committed_at AS STRING) FROM {table}.snapshots ORDER BY committed_at",
    # Old rows lie as before, the new one as asked.
    layouts="SELECT DISTINCT spec_id FROM {table}.files ORDER BY spec_id",
    evolved=((0,), (1,)),
)
DELTA = TableFormat(
    name="delta",
    family="delta",
    folder="delta",
    catalogs={"spark": "spark_catalog", "trino": "delta"},
    clause="USING delta",
    file="_metadata.file_path",
    versions="DESCRIBE HISTORY {table}",
    # A table of Delta has one layout: whoever changes it moves every row.
    layouts="SELECT DISTINCT _metadata.file_path LIKE '%/day=%' FROM {table}",
    evolved=((True,),),
)
HIVE_PARQUET = TableFormat(
    name="hive-parquet",
    family="hive",
    folder="hive/warehouse",
    catalogs=_HIVE_CATALOGS,
    clause="STORED AS PARQUET",
    file="input_file_name()",
    prefix="parquet",
)
HIVE_ORC = TableFormat(
    name="hive-orc",
    family="hive",
    folder="hive/warehouse",
    catalogs=_HIVE_CATALOGS,
    clause="STORED AS ORC",
    file="input_file_name()",
    prefix="orc",
)

FORMATS = (ICEBERG, DELTA, HIVE_PARQUET, HIVE_ORC)
BY_NAME = {fmt.name: fmt for fmt in FORMATS}
