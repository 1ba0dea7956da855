"""How Polars is asked: its own readers and writers where they reach HDFS, else `lakehouse_clients`."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl

from suites.matrix.operations import BOB, FAY
from suites.matrix.recipes.frames import frame, rows
from suites.matrix.recipes.recipe import Names, Recipes, recipe
from suites.testbed.engines.facade import Row

BY_ID = {"predicate": "old.id = new.id", "source_alias": "new", "target_alias": "old"}
NEW_SCHEMA = {"schema_mode": "overwrite"}


def raised(orders: pl.DataFrame) -> pl.DataFrame:
    """Return the orders as the operation `update` wants them."""
    raised_amount = (pl.col("amount") + Decimal("1.00")).cast(pl.Decimal(10, 2))
    return orders.with_columns(pl.col("customer").str.to_uppercase(), raised_amount)


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


def iceberg_update(lake: Any, names: Names) -> None:
    late = pl.col("day") >= dt.date(2024, 2, 1)
    changed = raised(lake.polars(f"iceberg.{names.short}").filter(late))
    table = lake.iceberg.load_table(names.short)
    changed.lazy().sink_iceberg(table, mode="overwrite", overwrite_filter=late)


def iceberg_add_column(lake: Any, names: Names) -> None:
    wide = pl.DataFrame(frame()).with_columns(note=pl.lit(None, pl.String))
    wide.lazy().sink_iceberg(lake.iceberg.load_table(names.short), mode="append", schema_mode="merge")


def iceberg_widen_column(lake: Any, names: Names) -> None:
    wide = pl.DataFrame(frame()).with_columns(pl.col("id").cast(pl.Int64))
    wide.lazy().sink_iceberg(lake.iceberg.load_table(names.short), mode="append", schema_mode="merge")


def iceberg_rename_column(lake: Any, names: Names) -> None:
    renamed = lake.polars(f"iceberg.{names.short}").rename({"customer": "buyer"})
    table = lake.iceberg.load_table(names.short)
    renamed.lazy().sink_iceberg(table, mode="overwrite", schema_mode="overwrite")


def iceberg_drop_column(lake: Any, names: Names) -> None:
    fewer = lake.polars(f"iceberg.{names.short}").drop("amount")
    table = lake.iceberg.load_table(names.short)
    fewer.lazy().sink_iceberg(table, mode="overwrite", schema_mode="overwrite")


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


def delta_update(lake: Any, names: Names) -> None:
    late = pl.col("day") >= dt.date(2024, 2, 1)
    changed = raised(lake.polars(f"delta.{names.short}").filter(late))
    merging: Any = changed.write_delta(lake.delta(names.short), mode="merge", delta_merge_options=BY_ID)
    merging.when_matched_update_all().execute()


def delta_delete(lake: Any, names: Names) -> None:
    bob = pl.DataFrame(frame(BOB))
    merging: Any = bob.write_delta(lake.delta(names.short), mode="merge", delta_merge_options=BY_ID)
    merging.when_matched_delete().execute()


def delta_merge(lake: Any, names: Names) -> None:
    changed = pl.DataFrame(frame((*BOB[:3], 25), FAY))
    merging: Any = changed.write_delta(lake.delta(names.short), mode="merge", delta_merge_options=BY_ID)
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def delta_add_column(lake: Any, names: Names) -> None:
    wide = pl.DataFrame(frame()).with_columns(note=pl.lit(None, pl.String))
    wide.write_delta(lake.delta(names.short), mode="append", delta_write_options={"schema_mode": "merge"})


def delta_rename_column(lake: Any, names: Names) -> None:
    renamed = lake.polars(f"delta.{names.short}").rename({"customer": "buyer"})
    renamed.write_delta(lake.delta(names.short), mode="overwrite", delta_write_options=NEW_SCHEMA)


def delta_drop_column(lake: Any, names: Names) -> None:
    fewer = lake.polars(f"delta.{names.short}").drop("amount")
    fewer.write_delta(lake.delta(names.short), mode="overwrite", delta_write_options=NEW_SCHEMA)


def delta_widen_column(lake: Any, names: Names) -> None:
    wide = lake.polars(f"delta.{names.short}").with_columns(pl.col("id").cast(pl.Int64))
    wide.write_delta(lake.delta(names.short), mode="overwrite", delta_write_options=NEW_SCHEMA)


def delta_partition_evolution(lake: Any, names: Names) -> None:
    orders, by_day = lake.polars(f"delta.{names.short}"), {**NEW_SCHEMA, "partition_by": ["day"]}
    orders.write_delta(lake.delta(names.short), mode="overwrite", delta_write_options=by_day)
    pl.DataFrame(frame(FAY)).write_delta(lake.delta(names.short), mode="append")


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
        "update": recipe(iceberg_update),
        "delete": recipe(iceberg_delete),
        "add column": recipe(iceberg_add_column),
        "rename column": recipe(iceberg_rename_column),
        "drop column": recipe(iceberg_drop_column),
        "widen column": recipe(iceberg_widen_column),
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
        "update": recipe(delta_update),
        "delete": recipe(delta_delete),
        "merge": recipe(delta_merge),
        "add column": recipe(delta_add_column),
        "rename column": recipe(delta_rename_column),
        "drop column": recipe(delta_drop_column),
        "widen column": recipe(delta_widen_column),
        "partition evolution": recipe(delta_partition_evolution),
        "read version": recipe(delta_read_version),
        "read timestamp": recipe(delta_read_timestamp),
    },
}
