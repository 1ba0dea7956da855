"""How Flink is asked, in batch mode: of Iceberg tables in `iceberg`, of Hive tables in the catalog `hive`."""

from __future__ import annotations

from suites.matrix.recipes.recipe import Recipe, Recipes, recipe
from suites.matrix.recipes.sql import common

_COLUMNS = "id, customer, `day`, amount"
_ROW = "SELECT 4, 'fay', DATE '2024-03-01', CAST(40 AS DECIMAL(10, 2))"
_CHANGED = (
    "SELECT 2 AS id, 'bob' AS customer, DATE '2024-02-15' AS `day`, CAST(25 AS DECIMAL(10, 2)) AS amount"
)

# What is asked alike of both catalogs.
_CREATE = "CREATE TABLE {{table}} (id INT, customer STRING, `day` DATE, amount DECIMAL(10, 2)){clause}"
_COMMON: dict[str, Recipe] = {
    **common("`day`"),
    "insert": recipe(f"INSERT INTO {{table}} {_ROW}"),
    "overwrite": recipe(f"INSERT OVERWRITE {{table}} {_ROW}"),
    "merge": recipe(
        f"MERGE INTO {{table}} AS present USING ({_CHANGED}) AS changed ON present.id = changed.id"
        " WHEN MATCHED THEN UPDATE SET amount = changed.amount"
    ),
    "add column": recipe("ALTER TABLE {table} ADD note STRING"),
    "rename column": recipe("ALTER TABLE {table} RENAME customer TO buyer"),
    "drop column": recipe("ALTER TABLE {table} DROP amount"),
    "widen column": recipe("ALTER TABLE {table} MODIFY id BIGINT"),
    "partition evolution": recipe("ALTER TABLE {table} ADD PARTITION (`day` = '2024-03-01')"),
    "statistics": recipe("ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS"),
}


def _procedures(catalog: str, version: str) -> dict[str, Recipe]:
    """Return the recipes of a catalog's procedures; `version` is an earlier snapshot."""
    prefix = f"CALL {catalog}.`system`."
    return {
        "rollback": recipe(f"{prefix}rollback_to_snapshot('{{short}}', {version})"),
        "compact": recipe(f"{prefix}rewrite_data_files('{{short}}')"),
        "expire": recipe(f"{prefix}expire_snapshots('{{short}}')"),
        "remove orphans": recipe(f"{prefix}remove_orphan_files('{{short}}')"),
    }


_ICEBERG = {
    **_COMMON,
    **_procedures("iceberg", "{version}"),
    "create": recipe(_CREATE.format(clause="")),
    "ctas": recipe("CREATE TABLE {copy} AS SELECT * FROM {table}"),
    "read version": recipe(
        f"SELECT {_COLUMNS} FROM {{table}} /*+ OPTIONS('snapshot-id' = '{{version}}') */ ORDER BY id"
    ),
    "read timestamp": recipe(
        f"SELECT {_COLUMNS} FROM {{table}} /*+ OPTIONS('as-of-timestamp' = '{{committed_ms}}') */ ORDER BY id"
    ),
}


def _hive(storage: str) -> dict[str, Recipe]:
    """Return what is asked of a Hive table; every file in its folder is data, so that none is an orphan."""
    clause = f" WITH ('connector' = 'hive', 'hive.storage.file-format' = '{storage}')"
    past = "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'"
    recipes = {
        **_COMMON,
        **_procedures("hive", "1"),
        "compact": recipe("ALTER TABLE {table} COMPACT"),
        "statistics": recipe(
            *_COMMON["statistics"].steps, "SHOW CREATE TABLE {table}", answer=r"numRows\W+3\W"
        ),
        "create": recipe(_CREATE.format(clause=clause)),
        "ctas": recipe(f"CREATE TABLE {{copy}}{clause} AS SELECT * FROM {{table}}"),
        "read version": recipe(f"SELECT {_COLUMNS} FROM {{table}} FOR VERSION AS OF 1"),
        "read timestamp": recipe(f"SELECT {_COLUMNS} FROM {{table}} {past} ORDER BY id"),
    }
    del recipes["remove orphans"]
    return recipes


# A table of the session alone: in the catalog `iceberg` the statement would make an Iceberg table.
_OURS = "default_catalog.default_database.delta"

RECIPES: Recipes = {
    "iceberg": _ICEBERG,
    "delta": {
        "read": _COMMON["read"],
        "create": recipe(
            f"CREATE TEMPORARY TABLE {_OURS} (id INT) WITH ('connector' = 'delta', 'path' = '{{uri}}')",
            f"INSERT INTO {_OURS} VALUES (1)",
        ),
    },
    "hive-parquet": _hive("parquet"),
    "hive-orc": _hive("orc"),
}
