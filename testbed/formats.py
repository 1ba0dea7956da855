"""What differs between the table formats, as data: the tests are written once and hold no `if`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Catalogued:
    """What the metastore stores about a table of a format; `columns` None: the real ones, in order."""

    table_type: str
    parameters: dict[str, str]
    input_format: str
    columns: list[list[str]] | None
    real_path: str


@dataclass(frozen=True, eq=False, repr=False)
class Format:
    """SQL of one table format.

    In the statements `{table}` is the full name, `{short}` the name without its catalog. `plan_*` are regular
    expressions over what EXPLAIN prints.
    """

    name: str
    catalog: str
    folder: str
    # How a table says beforehand that its columns may be renamed, widened and dropped.
    evolvable: str
    # A column that partitioning by month needs, the clause that asks for it, and the folder of a month.
    month_column: str
    partitioned_by_month: str
    month_folder: str
    # A small file is a task of its own, instead of one task for all of them.
    one_task_per_file: str
    history: str
    version: str
    committed: str
    restore: str
    compact: str
    cluster: str
    expire: tuple[str, ...]
    data_files: str
    log_folder: str
    plan_partitions_pruned: str
    plan_columns_pruned: str
    catalogued: Catalogued

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


ICEBERG = Format(
    name="iceberg",
    catalog="iceberg",
    folder="iceberg",
    evolvable="",
    month_column="",
    partitioned_by_month="PARTITIONED BY (months(day))",
    month_folder="data/day_month={month}",
    one_task_per_file="TBLPROPERTIES ('read.split.open-file-cost' = '134217728')",
    history="SELECT snapshot_id, committed_at FROM {table}.snapshots",
    version="snapshot_id",
    committed="committed_at",
    restore="CALL iceberg.system.rollback_to_snapshot('{short}', {version})",
    compact=(
        "CALL iceberg.system.rewrite_data_files(table => '{short}', options => map('min-input-files', '2'))"
    ),
    cluster=(
        "CALL iceberg.system.rewrite_data_files(table => '{short}', strategy => 'sort',"
        " sort_order => 'zorder(customer, day)', options => map('rewrite-all', 'true'))"
    ),
    expire=(
        "CALL iceberg.system.expire_snapshots("
        "table => '{short}', older_than => current_timestamp(), retain_last => 1)",
    ),
    data_files="SELECT file_path FROM {table}.files",
    log_folder="metadata",
    plan_partitions_pruned=r"IcebergScan\(.*filters=[^\]]*day = ",
    plan_columns_pruned=r"BatchScan \S+\[customer#\d+\]",
    catalogued=Catalogued(
        table_type="EXTERNAL_TABLE",
        parameters={"table_type": "ICEBERG"},
        input_format="org.apache.hadoop.mapred.FileInputFormat",
        columns=None,
        real_path="LOCATION",
    ),
)

DELTA = Format(
    name="delta",
    catalog="spark_catalog",
    folder="delta",
    evolvable="TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')",
    # Delta knows no transforms: a generated column does what they do.
    month_column=", month STRING GENERATED ALWAYS AS (date_format(day, 'yyyy-MM'))",
    partitioned_by_month="PARTITIONED BY (month)",
    month_folder="month={month}",
    one_task_per_file="",
    history="DESCRIBE HISTORY {table}",
    version="version",
    committed="timestamp",
    restore="RESTORE TABLE {table} TO VERSION AS OF {version}",
    compact="OPTIMIZE {table}",
    cluster="OPTIMIZE {table} ZORDER BY (customer, day)",
    expire=(
        "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        "VACUUM {table} RETAIN 0 HOURS",
    ),
    data_files="SELECT DISTINCT _metadata.file_path FROM {table}",
    log_folder="_delta_log",
    plan_partitions_pruned=r"PartitionFilters: \[[^\]]*month",
    plan_columns_pruned=r"ReadSchema: struct<customer:string>",
    catalogued=Catalogued(
        table_type="MANAGED_TABLE",
        parameters={"spark.sql.sources.provider": "delta"},
        # The metastore cannot read Delta's log, and Spark fills the fields with this placeholder.
        input_format="org.apache.hadoop.mapred.SequenceFileInputFormat",
        columns=[["col", "array<string>"]],
        real_path="path",
    ),
)

FORMATS = (ICEBERG, DELTA)
