"""How Flink is asked, in batch mode."""

from __future__ import annotations

from smoke.matrix.recipes.recipe import Recipe, Recipes, recipe
from smoke.matrix.recipes.sql import common

_COLUMNS = "id, customer, `day`, amount"
_ROW = "SELECT 4, 'fay', DATE '2024-03-01', CAST(40 AS DECIMAL(10, 2))"
_CHANGED = (
    "SELECT 2 AS id, 'bob' AS customer, DATE '2024-02-15' AS `day`, CAST(25 AS DECIMAL(10, 2)) AS amount"
)

# A table of the session alone: in the catalog `iceberg` the statement would make an Iceberg table.
_OURS = "default_catalog.default_database.{name}"


def _without_connector(kind: str) -> dict[str, Recipe]:
    """Return how a table is asked for that the kit's only catalog, `iceberg`, does not show."""
    return {
        "read": common("`day`")["read"],
        "create": recipe(
            f"CREATE TEMPORARY TABLE {_OURS} (id INT) WITH ('connector' = '{kind}', 'path' = '{{uri}}')",
            f"INSERT INTO {_OURS} VALUES (1)",
        ),
    }


RECIPES: Recipes = {
    "delta": _without_connector("delta"),
    "hive-parquet": _without_connector("hive"),
    "hive-orc": _without_connector("hive"),
    "iceberg": {
        **common("`day`"),
        "create": recipe("CREATE TABLE {table} (id INT, customer STRING, `day` DATE, amount DECIMAL(10, 2))"),
        "ctas": recipe("CREATE TABLE {copy} AS SELECT * FROM {table}"),
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
        "read version": recipe(
            f"SELECT {_COLUMNS} FROM {{table}} /*+ OPTIONS('snapshot-id' = '{{version}}') */ ORDER BY id"
        ),
        "read timestamp": recipe(
            f"SELECT {_COLUMNS} FROM {{table}} /*+ OPTIONS('as-of-timestamp' = '{{committed_ms}}') */"
            " ORDER BY id"
        ),
        "rollback": recipe("CALL iceberg.`system`.rollback_to_snapshot('{short}', {version})"),
        "statistics": recipe("ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS"),
        "compact": recipe("CALL iceberg.`system`.rewrite_data_files('{short}')"),
        "expire": recipe("CALL iceberg.`system`.expire_snapshots('{short}')"),
        "remove orphans": recipe("CALL iceberg.`system`.remove_orphan_files('{short}')"),
    },
}
