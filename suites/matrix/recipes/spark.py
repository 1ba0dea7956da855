"""How Spark is asked."""

from __future__ import annotations

from suites.matrix.recipes.recipe import Recipe, Recipes, recipe
from suites.matrix.recipes.sql import ROW, common, merge

_CREATE = "CREATE TABLE {{table}} (id INT, customer STRING, day DATE, amount DECIMAL(10, 2)) {clause}"
_CTAS = "CREATE TABLE {{copy}} {clause} AS SELECT * FROM {{table}}"
_PARTITIONING = "ALTER TABLE {table} ADD PARTITION FIELD months(day)"
_COLUMN_STATISTICS = recipe(
    "ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS customer",
    "DESCRIBE EXTENDED {table} customer",
    answer=r"'distinct_count', '3'",
)


def _spark(clause: str) -> dict[str, Recipe]:
    """Return what is the same for all formats; `clause` makes a table one of its format."""
    return {
        **common(),
        "create": recipe(_CREATE.format(clause=clause)),
        "ctas": recipe(_CTAS.format(clause=clause)),
        "overwrite": recipe(f"INSERT OVERWRITE {{table}} VALUES {ROW}"),
        "merge": recipe(merge("VALUES {rows} AS changed (id, customer, day, amount)", "INSERT *")),
        "add column": recipe("ALTER TABLE {table} ADD COLUMNS (note STRING)"),
        "rename column": recipe("ALTER TABLE {table} RENAME COLUMN customer TO buyer"),
        "drop column": recipe("ALTER TABLE {table} DROP COLUMN amount"),
        "widen column": recipe("ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT"),
        "partition evolution": recipe(_PARTITIONING, f"INSERT INTO {{table}} VALUES {ROW}"),
        "read version": recipe("SELECT * FROM {table} VERSION AS OF {version} ORDER BY id"),
        "read timestamp": recipe("SELECT * FROM {table} TIMESTAMP AS OF '{committed}' ORDER BY id"),
        "statistics": _COLUMN_STATISTICS,
    }


_ICEBERG = {
    **_spark("USING iceberg"),
    "rollback": recipe("CALL iceberg.system.rollback_to_snapshot('{short}', {version})"),
    "statistics": recipe("CALL iceberg.system.compute_table_stats(table => '{short}')", answer=r"\.stats"),
    "compact": recipe(
        "CALL iceberg.system.rewrite_data_files(table => '{short}', options => map('min-input-files', '2'))"
    ),
    "expire": recipe(
        "CALL iceberg.system.expire_snapshots("
        "table => '{short}', older_than => current_timestamp(), retain_last => 1)"
    ),
    "remove orphans": recipe("CALL iceberg.system.remove_orphan_files(table => '{short}')"),
}


# Iceberg's procedure, where there is no other.
_EXPIRE = recipe("CALL iceberg.system.expire_snapshots(table => '{short}')")


def _mapped(statement: str) -> Recipe:
    return recipe(
        "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        statement,
    )


_DELTA = {
    **_spark("USING delta"),
    "rename column": _mapped("ALTER TABLE {table} RENAME COLUMN customer TO buyer"),
    "drop column": _mapped("ALTER TABLE {table} DROP COLUMN amount"),
    "widen column": recipe(
        "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT",
    ),
    "partition evolution": recipe(
        "CREATE OR REPLACE TABLE {table} USING delta PARTITIONED BY (day) AS SELECT * FROM {table}",
        f"INSERT INTO {{table}} VALUES {ROW}",
    ),
    "rollback": recipe("RESTORE TABLE {table} TO VERSION AS OF {version}"),
    "compact": recipe("OPTIMIZE {table}"),
    "remove orphans": recipe("VACUUM {table}"),
}


def _hive(storage: str) -> dict[str, Recipe]:
    return {
        **_spark(f"STORED AS {storage}"),
        "partition evolution": recipe(_PARTITIONING),
        "read version": recipe("SELECT * FROM {table} VERSION AS OF 1"),
        "read timestamp": recipe("SELECT * FROM {table} TIMESTAMP AS OF '2026-01-01'"),
        "rollback": recipe("CALL iceberg.system.rollback_to_snapshot('{short}', 1)"),
        "compact": recipe("ALTER TABLE {table} COMPACT 'major'"),
        "expire": _EXPIRE,
    }


RECIPES: Recipes = {
    "iceberg": _ICEBERG,
    "delta": _DELTA,
    "hive-parquet": _hive("PARQUET"),
    "hive-orc": _hive("ORC"),
}
