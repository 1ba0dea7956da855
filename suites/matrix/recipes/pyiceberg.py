"""Recipes of PyIceberg."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pyiceberg.transforms import MonthTransform
from pyiceberg.types import LongType, StringType

from suites.matrix.operations import BOB, FAY
from suites.matrix.recipes.frames import SCHEMA, frame, rows, with_ids_from
from suites.matrix.recipes.recipe import Names, Recipes, recipe
from suites.testbed.engines.facade import Row


def read(lake: Any, names: Names) -> list[Row]:
    return rows(lake.iceberg.load_table(names.short).scan().to_arrow())


def create(lake: Any, names: Names) -> None:
    lake.iceberg.create_table(names.short, schema=SCHEMA)


def ctas(lake: Any, names: Names) -> None:
    orders = lake.iceberg.load_table(names.short).scan().to_arrow()
    with lake.iceberg.create_table_transaction(names.copy_short, schema=orders.schema) as new:
        new.append(orders)


def insert(lake: Any, names: Names) -> None:
    lake.iceberg.load_table(names.short).append(frame(FAY))


def append(lake: Any, names: Names) -> None:
    table = lake.iceberg.load_table(names.short)
    table.append(with_ids_from(10, table.scan().to_arrow()))


def overwrite(lake: Any, names: Names) -> None:
    lake.iceberg.load_table(names.short).overwrite(frame(FAY))


def update(lake: Any, names: Names) -> None:
    table = lake.iceberg.load_table(names.short)
    late = table.scan(row_filter="day >= '2024-02-01'").to_arrow().to_pylist()
    changed = [(o["id"], o["customer"].upper(), o["day"], o["amount"] + 1) for o in late]
    table.overwrite(frame(*changed), overwrite_filter="day >= '2024-02-01'")


def delete(lake: Any, names: Names) -> None:
    lake.iceberg.load_table(names.short).delete("id = 2")


def merge(lake: Any, names: Names) -> None:
    lake.iceberg.load_table(names.short).upsert(frame((*BOB[:3], 25), FAY), join_cols=["id"])


def add_column(lake: Any, names: Names) -> None:
    with lake.iceberg.load_table(names.short).update_schema() as change:
        change.add_column("note", StringType())


def rename_column(lake: Any, names: Names) -> None:
    with lake.iceberg.load_table(names.short).update_schema() as change:
        change.rename_column("customer", "buyer")


def drop_column(lake: Any, names: Names) -> None:
    with lake.iceberg.load_table(names.short).update_schema() as change:
        change.delete_column("amount")


def widen_column(lake: Any, names: Names) -> None:
    with lake.iceberg.load_table(names.short).update_schema() as change:
        change.update_column("id", field_type=LongType())


def partition_evolution(lake: Any, names: Names) -> None:
    table = lake.iceberg.load_table(names.short)
    with table.update_spec() as change:
        change.add_field("day", MonthTransform(), "by_month")
    table.append(frame(FAY))


def read_version(lake: Any, names: Names) -> list[Row]:
    return rows(lake.iceberg.load_table(names.short).scan(snapshot_id=int(names.version)).to_arrow())


def read_timestamp(lake: Any, names: Names) -> list[Row]:
    table = lake.iceberg.load_table(names.short)
    snapshot = table.snapshot_as_of_timestamp(int(names.committed_ms))
    return rows(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())


def rollback(lake: Any, names: Names) -> None:
    with lake.iceberg.load_table(names.short).manage_snapshots() as change:
        change.rollback_to_snapshot(int(names.version))


def read_view(lake: Any, names: Names) -> list[Row]:
    return rows(lake.iceberg.load_view(f"{names.short}_view"))


def expire(lake: Any, names: Names) -> None:
    table = lake.iceberg.load_table(names.short)
    table.maintenance.expire_snapshots().older_than(dt.datetime.now()).commit()


def drop(lake: Any, names: Names) -> None:
    lake.iceberg.drop_table(names.short)


RECIPES: Recipes = {
    **{format_name: {"read": recipe(read)} for format_name in ("delta", "hive-parquet", "hive-orc")},
    "iceberg": {
        "read": recipe(read),
        "create": recipe(create),
        "ctas": recipe(ctas),
        "insert": recipe(insert),
        "append": recipe(append),
        "overwrite": recipe(overwrite),
        "update": recipe(update),
        "delete": recipe(delete),
        "merge": recipe(merge),
        "add column": recipe(add_column),
        "rename column": recipe(rename_column),
        "drop column": recipe(drop_column),
        "widen column": recipe(widen_column),
        "partition evolution": recipe(partition_evolution),
        "read version": recipe(read_version),
        "read timestamp": recipe(read_timestamp),
        "rollback": recipe(rollback),
        "read view": recipe(read_view),
        "expire": recipe(expire),
        "drop": recipe(drop),
    },
}
