"""How Trino is asked."""

from __future__ import annotations

from suites.matrix.recipes.recipe import Recipe, Recipes, recipe
from suites.matrix.recipes.sql import ROW, common, merge

_INSERT = "INSERT (id, customer, day, amount) VALUES (new.id, new.customer, new.day, new.amount)"
_CREATE = "CREATE TABLE {{table}} (id integer, customer varchar, day date, amount decimal(10, 2)){clause}"
_CTAS = "CREATE TABLE {{copy}}{clause} AS SELECT * FROM {{table}}"


def _trino(clause: str = "") -> dict[str, Recipe]:
    """Return what is the same for all formats; `clause` is the WITH of CREATE TABLE."""
    return {
        **common(),
        "create": recipe(_CREATE.format(clause=clause)),
        "ctas": recipe(_CTAS.format(clause=clause)),
        "overwrite": recipe(
            "CREATE OR REPLACE TABLE {table} AS"
            " SELECT id, customer, day, CAST(amount AS decimal(10, 2)) AS amount"
            f" FROM (VALUES {ROW}) AS orders (id, customer, day, amount)"
        ),
        "merge": recipe(merge("(VALUES {rows}) AS changed (id, customer, day, amount)", _INSERT)),
        "add column": recipe("ALTER TABLE {table} ADD COLUMN note varchar"),
        "rename column": recipe("ALTER TABLE {table} RENAME COLUMN customer TO buyer"),
        "drop column": recipe("ALTER TABLE {table} DROP COLUMN amount"),
        "widen column": recipe("ALTER TABLE {table} ALTER COLUMN id SET DATA TYPE bigint"),
        "partition evolution": recipe(
            "ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['month(day)']"
        ),
        "read version": recipe("SELECT * FROM {table} FOR VERSION AS OF {version} ORDER BY id"),
        "read timestamp": recipe(
            "SELECT * FROM {table} FOR TIMESTAMP AS OF TIMESTAMP '{committed} UTC' ORDER BY id"
        ),
        "rollback": recipe("ALTER TABLE {table} EXECUTE rollback_to_snapshot(1)"),
        "statistics": recipe(
            "ANALYZE {table}", "SHOW STATS FOR {table}", answer=r"'customer', [^,]+, 3\.0, 0\.0"
        ),
        "compact": recipe("ALTER TABLE {table} EXECUTE optimize"),
        "expire": recipe("ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '7d')"),
    }


_ICEBERG = {
    **_trino(),
    "partition evolution": recipe(
        "ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['month(day)']",
        f"INSERT INTO {{table}} VALUES {ROW}",
    ),
    "rollback": recipe("ALTER TABLE {table} EXECUTE rollback_to_snapshot({version})"),
    "expire": recipe(
        "SET SESSION iceberg.expire_snapshots_min_retention = '0s'",
        "ALTER TABLE {table} EXECUTE expire_snapshots(retention_threshold => '0s')",
    ),
    "remove orphans": recipe("ALTER TABLE {table} EXECUTE remove_orphan_files(retention_threshold => '7d')"),
}

# Spark's views are the Hive connector's, whatever they show.
_VIEW = recipe("SELECT * FROM hive.{short}_view ORDER BY id")
_PARTITIONING = recipe("ALTER TABLE {table} SET PROPERTIES partitioned_by = ARRAY['day']")

_DELTA = {
    **_trino(),
    "partition evolution": _PARTITIONING,
    "read view": _VIEW,
    "remove orphans": recipe("CALL {catalog}.system.vacuum('{database}', '{name}', '7d')"),
}


def _hive(storage: str) -> dict[str, Recipe]:
    return {
        **_trino(f" WITH (format = '{storage}')"),
        "overwrite": recipe(
            "SET SESSION hive.insert_existing_partitions_behavior = 'OVERWRITE'",
            f"INSERT INTO {{table}} VALUES {ROW}",
            "RESET SESSION hive.insert_existing_partitions_behavior",
        ),
        "partition evolution": _PARTITIONING,
        "read view": _VIEW,
        "read version": recipe("SELECT * FROM {table} FOR VERSION AS OF 1"),
        "read timestamp": recipe(
            "SELECT * FROM {table} FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00 UTC'"
        ),
        "compact": recipe(
            "SET SESSION hive.non_transactional_optimize_enabled = true",
            "ALTER TABLE {table} EXECUTE optimize",
        ),
    }


RECIPES: Recipes = {
    "iceberg": _ICEBERG,
    "delta": _DELTA,
    "hive-parquet": _hive("PARQUET"),
    "hive-orc": _hive("ORC"),
}
