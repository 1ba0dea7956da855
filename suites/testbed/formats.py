"""The table formats, and what each engine calls them: data, so that tests are written once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, eq=False, repr=False)
class Format:
    """A format of tables. What a single test asks of a format lies beside that test.

    `family` is one for formats that share a database; `prefix` keeps their tables apart there. `catalogs` is
    the catalog by engine: one that is not in it has no SQL for the format. `clause` makes Spark create such a
    table.

    The rest is Spark's SQL, where `{table}` is the full name; empty: there is no such thing. `file` is the
    expression for the file from which a row comes, `data_files` the query for all files of the current
    version. `history` is the query for commits, with `version` and `committed` its columns for number and
    moment. `log_folder` is where the format keeps its own files.
    """

    name: str
    family: str
    folder: str
    catalogs: Mapping[str, str]
    clause: str
    file: str
    data_files: str = ""
    history: str = ""
    version: str = ""
    committed: str = ""
    log_folder: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


_HIVE_CATALOGS = {"spark": "spark_catalog", "trino": "hive", "flink": "hive"}

ICEBERG = Format(
    name="iceberg",
    family="iceberg",
    folder="iceberg",
    catalogs={"spark": "iceberg", "trino": "iceberg", "flink": "iceberg"},
    clause="USING iceberg",
    file="_file",
    data_files="SELECT file_path FROM {table}.files",
    history="SELECT snapshot_id, committed_at FROM {table}.snapshots",
    version="snapshot_id",
    committed="committed_at",
    log_folder="metadata",
)
DELTA = Format(
    name="delta",
    family="delta",
    folder="delta",
    catalogs={"spark": "spark_catalog", "trino": "delta"},
    clause="USING delta",
    file="_metadata.file_path",
    data_files="SELECT DISTINCT _metadata.file_path FROM {table}",
    history="DESCRIBE HISTORY {table}",
    version="version",
    committed="timestamp",
    log_folder="_delta_log",
)
HIVE_PARQUET = Format(
    name="hive-parquet",
    family="hive",
    folder="hive/warehouse",
    catalogs=_HIVE_CATALOGS,
    clause="STORED AS PARQUET",
    file="input_file_name()",
    prefix="parquet",
)
HIVE_ORC = Format(
    name="hive-orc",
    family="hive",
    folder="hive/warehouse",
    catalogs=_HIVE_CATALOGS,
    clause="STORED AS ORC",
    file="input_file_name()",
    prefix="orc",
)

# Open table formats: they have a log of commits, and Hive tables have not.
OPEN_FORMATS = (ICEBERG, DELTA)
FORMATS = (*OPEN_FORMATS, HIVE_PARQUET, HIVE_ORC)
# Both Hive formats share a database.
ONE_OF_EACH_FAMILY = (*OPEN_FORMATS, HIVE_PARQUET)
BY_NAME = {fmt.name: fmt for fmt in FORMATS}


@dataclass(frozen=True)
class Catalogued:
    """What the metastore stores about a table of a format; `columns` None: the real ones, in order."""

    table_type: str
    parameters: dict[str, str]
    input_format: str
    columns: list[list[str]] | None
    real_path: str


CATALOGUED: Mapping[Format, Catalogued] = {
    ICEBERG: Catalogued(
        table_type="EXTERNAL_TABLE",
        parameters={"table_type": "ICEBERG"},
        input_format="org.apache.hadoop.mapred.FileInputFormat",
        columns=None,
        real_path="LOCATION",
    ),
    DELTA: Catalogued(
        table_type="MANAGED_TABLE",
        parameters={"spark.sql.sources.provider": "delta"},
        # The metastore cannot read Delta's log, and Spark fills the fields with this placeholder.
        input_format="org.apache.hadoop.mapred.SequenceFileInputFormat",
        columns=[["col", "array<string>"]],
        real_path="path",
    ),
}
