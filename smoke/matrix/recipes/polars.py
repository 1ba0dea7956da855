"""How Polars is asked: its own readers and writers where they reach HDFS, else `lakehouse_clients`."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl

from smoke.lake import Row
from smoke.matrix.operations import BOB, FAY
from smoke.matrix.recipes.frames import frame, rows
from smoke.matrix.recipes.recipe import Names, Recipes, recipe


def iceberg_read(lake: Any, names: Names) -> list[Row]:
    return rows(lake.polars(f"iceberg.{names.short}"))


def iceberg_create(lake: Any, names: Names) -> None:
    lake.create(f"iceberg.{names.short}", pl.DataFrame(frame()).to_arrow())


def iceberg_ctas(lake: Any, names: Names) -> None:
    lake.create(f"iceberg.{names.copy_short}", lake.polars(f"iceberg.{names.short}").to_arrow())


def iceberg_insert(lake: Any, names: Names) -> None:
    pl.DataFrame(frame(FAY)).write_iceberg(lake.iceberg.load_table(names.short), mode="append")


def iceberg_append(lake: Any, names: Names) -> None:
    orders = lake.polars(f"iceberg.{names.short}").with_columns(pl.col("id") + 10)
    orders.write_iceberg(lake.iceberg.load_table(names.short), mode="append")


def iceberg_overwrite(lake: Any, names: Names) -> None:
    pl.DataFrame(frame(FAY)).write_iceberg(lake.iceberg.load_table(names.short), mode="overwrite")


def iceberg_delete(lake: Any, names: Names) -> None:
    pl.delete_iceberg(lake.iceberg.load_table(names.short), pl.col("id") == 2)


def iceberg_read_version(lake: Any, names: Names) -> list[Row]:
    table = lake.iceberg.load_table(names.short)
    return rows(pl.scan_iceberg(table, snapshot_id=int(names.version), reader_override="pyiceberg").collect())


def iceberg_read_timestamp(lake: Any, names: Names) -> list[Row]:
    table = lake.iceberg.load_table(names.short)
    snapshot = table.snapshot_as_of_timestamp(int(names.committed_ms)).snapshot_id
    return rows(pl.scan_iceberg(table, snapshot_id=snapshot, reader_override="pyiceberg").collect())


def delta_read(lake: Any, names: Names) -> list[Row]:
    return rows(lake.polars(f"delta.{names.short}"))


def delta_create(lake: Any, names: Names) -> None:
    lake.create(f"delta.{names.short}", pl.DataFrame(frame()).to_arrow())


def delta_ctas(lake: Any, names: Names) -> None:
    lake.create(f"delta.{names.copy_short}", lake.polars(f"delta.{names.short}").to_arrow())


def delta_insert(lake: Any, names: Names) -> None:
    pl.DataFrame(frame(FAY)).write_delta(lake.delta(names.short), mode="append")


def delta_append(lake: Any, names: Names) -> None:
    orders = lake.polars(f"delta.{names.short}").with_columns(pl.col("id") + 10)
    orders.write_delta(lake.delta(names.short), mode="append")


def delta_overwrite(lake: Any, names: Names) -> None:
    pl.DataFrame(frame(FAY)).write_delta(lake.delta(names.short), mode="overwrite")


def delta_merge(lake: Any, names: Names) -> None:
    options = {"predicate": "old.id = new.id", "source_alias": "new", "target_alias": "old"}
    changed = pl.DataFrame(frame((*BOB[:3], 25), FAY))
    merging: Any = changed.write_delta(lake.delta(names.short), mode="merge", delta_merge_options=options)
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def delta_add_column(lake: Any, names: Names) -> None:
    wide = pl.DataFrame(frame()).with_columns(note=pl.lit(None, pl.String))
    wide.write_delta(lake.delta(names.short), mode="append", delta_write_options={"schema_mode": "merge"})


def delta_read_version(lake: Any, names: Names) -> list[Row]:
    return rows(lake.polars(f"delta.{names.short}", version=int(names.version)))


def delta_read_timestamp(lake: Any, names: Names) -> list[Row]:
    table = lake.delta(names.short)
    table.load_as_version(dt.datetime.fromisoformat(names.committed).replace(tzinfo=dt.UTC))
    return rows(lake.polars(f"delta.{names.short}", version=table.version()))


def parquet_read(_lake: Any, names: Names) -> list[Row]:
    return rows(pl.read_parquet(f"{names.uri}/*"))


def orc_read(_lake: Any, names: Names) -> list[Row]:
    polars: Any = pl
    return rows(polars.read_orc(f"{names.uri}/*"))


RECIPES: Recipes = {
    "hive-parquet": {"read": recipe(parquet_read)},
    "hive-orc": {"read": recipe(orc_read)},
    "iceberg": {
        "read": recipe(iceberg_read),
        "create": recipe(iceberg_create),
        "ctas": recipe(iceberg_ctas),
        "insert": recipe(iceberg_insert),
        "append": recipe(iceberg_append),
        "overwrite": recipe(iceberg_overwrite),
        "delete": recipe(iceberg_delete),
        "read version": recipe(iceberg_read_version),
        "read timestamp": recipe(iceberg_read_timestamp),
    },
    "delta": {
        "read": recipe(delta_read),
        "create": recipe(delta_create),
        "ctas": recipe(delta_ctas),
        "insert": recipe(delta_insert),
        "append": recipe(delta_append),
        "overwrite": recipe(delta_overwrite),
        "merge": recipe(delta_merge),
        "add column": recipe(delta_add_column),
        "read version": recipe(delta_read_version),
        "read timestamp": recipe(delta_read_timestamp),
    },
}
