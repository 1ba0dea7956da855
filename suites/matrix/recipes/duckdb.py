"""How DuckDB is asked: a table comes to it as Arrow, and what it computes is written by the other clients.

In SQL a table is called as `lakehouse_clients` calls it, in quotes: a view of the Arrow data.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from suites.matrix.recipes.frames import rows
from suites.matrix.recipes.recipe import Names, Recipe, Recipes, recipe
from suites.matrix.recipes.sql import ROW
from suites.testbed.engines.facade import Row


def iceberg_create(lake: Any, names: Names) -> None:
    columns = (
        "CAST(0 AS INT) AS id, '' AS customer, DATE '1970-01-01' AS day, CAST(0 AS DECIMAL(10, 2)) AS amount"
    )
    lake.create(f"iceberg.{names.short}", lake.sql(f"SELECT {columns} WHERE false"))


def iceberg_ctas(lake: Any, names: Names) -> None:
    lake.create(f"iceberg.{names.copy_short}", lake.sql(f"SELECT * FROM iceberg.{names.short}"))


def iceberg_append(lake: Any, names: Names) -> None:
    table = f"iceberg.{names.short}"
    lake.append(table, lake.sql(f"SELECT CAST(id + 10 AS INT) AS id, customer, day, amount FROM {table}"))


def iceberg_overwrite(lake: Any, names: Names) -> None:
    row = "4 AS id, 'fay' AS customer, DATE '2024-03-01' AS day, CAST(40 AS DECIMAL(10, 2)) AS amount"
    lake.overwrite(f"iceberg.{names.short}", lake.sql(f"SELECT {row}"))


def delta_create(lake: Any, names: Names) -> None:
    columns = (
        "CAST(0 AS INT) AS id, '' AS customer, DATE '1970-01-01' AS day, CAST(0 AS DECIMAL(10, 2)) AS amount"
    )
    lake.create(f"delta.{names.short}", lake.sql(f"SELECT {columns} WHERE false"))


def delta_ctas(lake: Any, names: Names) -> None:
    lake.create(f"delta.{names.copy_short}", lake.sql(f"SELECT * FROM delta.{names.short}"))


def delta_append(lake: Any, names: Names) -> None:
    table = f"delta.{names.short}"
    lake.append(table, lake.sql(f"SELECT CAST(id + 10 AS INT) AS id, customer, day, amount FROM {table}"))


def delta_overwrite(lake: Any, names: Names) -> None:
    row = "4 AS id, 'fay' AS customer, DATE '2024-03-01' AS day, CAST(40 AS DECIMAL(10, 2)) AS amount"
    lake.overwrite(f"delta.{names.short}", lake.sql(f"SELECT {row}"))


def _past(lake: Any, table: str, version: int) -> list[Row]:
    with lake.duckdb() as duck:
        duck.register("past", lake.arrow(table, version=version))
        return rows(duck.sql("SELECT * FROM past").to_arrow_table())


def iceberg_read_version(lake: Any, names: Names) -> list[Row]:
    return _past(lake, f"iceberg.{names.short}", int(names.version))


def iceberg_read_timestamp(lake: Any, names: Names) -> list[Row]:
    snapshot = lake.iceberg.load_table(names.short).snapshot_as_of_timestamp(int(names.committed_ms))
    return _past(lake, f"iceberg.{names.short}", snapshot.snapshot_id)


def delta_read_version(lake: Any, names: Names) -> list[Row]:
    return _past(lake, f"delta.{names.short}", int(names.version))


def delta_read_timestamp(lake: Any, names: Names) -> list[Row]:
    table = lake.delta(names.short)
    table.load_as_version(dt.datetime.fromisoformat(names.committed).replace(tzinfo=dt.UTC))
    return _past(lake, f"delta.{names.short}", table.version())


def _duckdb(fmt: str) -> dict[str, Recipe]:
    """Return what is asked in SQL: of the Arrow view, and of DuckDB itself."""
    columns = "SELECT id, customer, day, amount FROM"
    return {
        "read": recipe(f'{columns} "{fmt}.{{short}}" ORDER BY id'),
        # Whatever DuckDB could do with a table begins here.
        "insert": recipe(f"ATTACH '{{uri}}' AS lake (TYPE {fmt}); INSERT INTO lake VALUES {ROW}"),
    }


RECIPES: Recipes = {
    "hive-parquet": {"read": recipe("SELECT * FROM read_parquet('{uri}/*')")},
    "hive-orc": {"read": recipe("SELECT * FROM read_orc('{uri}/*')")},
    "iceberg": {
        **_duckdb("iceberg"),
        "read view": recipe('SELECT * FROM "iceberg.{short}_view"'),
        "create": recipe(iceberg_create),
        "ctas": recipe(iceberg_ctas),
        "append": recipe(iceberg_append),
        "overwrite": recipe(iceberg_overwrite),
        "read version": recipe(iceberg_read_version),
        "read timestamp": recipe(iceberg_read_timestamp),
    },
    "delta": {
        **_duckdb("delta"),
        "create": recipe(delta_create),
        "ctas": recipe(delta_ctas),
        "append": recipe(delta_append),
        "overwrite": recipe(delta_overwrite),
        "read version": recipe(delta_read_version),
        "read timestamp": recipe(delta_read_timestamp),
    },
}
