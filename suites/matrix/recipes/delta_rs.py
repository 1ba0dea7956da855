"""Recipes of delta-rs, with the metastore updated by `lakehouse_clients`."""

from __future__ import annotations

import datetime as dt
from typing import Any

from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from suites.matrix.operations import BOB, FAY
from suites.matrix.recipes.frames import frame, rows, widened, with_ids_from
from suites.matrix.recipes.recipe import Names, Recipes, recipe
from suites.testbed.engines.facade import Row


def read(lake: Any, names: Names) -> list[Row]:
    return rows(lake.arrow(f"delta.{names.short}"))


def read_folder(lake: Any, names: Names) -> list[Row]:
    return rows(DeltaTable(names.uri, storage_options=dict(lake.settings.hdfs)).to_pyarrow_table())


def create(lake: Any, names: Names) -> None:
    lake.create(f"delta.{names.short}", frame())


def ctas(lake: Any, names: Names) -> None:
    lake.create(f"delta.{names.copy_short}", lake.arrow(f"delta.{names.short}"))


def insert(lake: Any, names: Names) -> None:
    write_deltalake(lake.delta(names.short), frame(FAY), mode="append")


def append(lake: Any, names: Names) -> None:
    orders = lake.arrow(f"delta.{names.short}")
    write_deltalake(lake.delta(names.short), with_ids_from(10, orders), mode="append")


def overwrite(lake: Any, names: Names) -> None:
    write_deltalake(lake.delta(names.short), frame(FAY), mode="overwrite")


def update(lake: Any, names: Names) -> None:
    changes = {"amount": "amount + 1", "customer": "upper(customer)"}
    lake.delta(names.short).update(changes, predicate="day >= '2024-02-01'")


def delete(lake: Any, names: Names) -> None:
    lake.delta(names.short).delete("id = 2")


def merge(lake: Any, names: Names) -> None:
    changed = frame((*BOB[:3], 25), FAY)
    merging = lake.delta(names.short).merge(
        changed, "old.id = new.id", source_alias="new", target_alias="old"
    )
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def add_column(lake: Any, names: Names) -> None:
    lake.delta(names.short).alter.add_columns(Field("note", PrimitiveType("string")))


def rename_column(lake: Any, names: Names) -> None:
    renamed = lake.arrow(f"delta.{names.short}").rename_columns({"customer": "buyer"})
    write_deltalake(lake.delta(names.short), renamed, mode="overwrite", schema_mode="overwrite")


def drop_column(lake: Any, names: Names) -> None:
    fewer = lake.arrow(f"delta.{names.short}").drop_columns(["amount"])
    write_deltalake(lake.delta(names.short), fewer, mode="overwrite", schema_mode="overwrite")


def widen_column(lake: Any, names: Names) -> None:
    wide = widened(lake.arrow(f"delta.{names.short}"))
    write_deltalake(lake.delta(names.short), wide, mode="overwrite", schema_mode="overwrite")


def partition_evolution(lake: Any, names: Names) -> None:
    orders = lake.arrow(f"delta.{names.short}")
    table = lake.delta(names.short)
    write_deltalake(table, orders, mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    write_deltalake(table, frame(FAY), mode="append")


def read_version(lake: Any, names: Names) -> list[Row]:
    return rows(lake.arrow(f"delta.{names.short}", version=int(names.version)))


def read_timestamp(lake: Any, names: Names) -> list[Row]:
    table = lake.delta(names.short)
    table.load_as_version(dt.datetime.fromisoformat(names.committed).replace(tzinfo=dt.UTC))
    return rows(lake.arrow(f"delta.{names.short}", version=table.version()))


def rollback(lake: Any, names: Names) -> None:
    lake.delta(names.short).restore(int(names.version))


def compact(lake: Any, names: Names) -> None:
    lake.delta(names.short).optimize.compact()


def expire(lake: Any, names: Names) -> None:
    table = lake.delta(names.short)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    table.create_checkpoint()
    table.cleanup_metadata()


def remove_orphans(lake: Any, names: Names) -> None:
    lake.delta(names.short).vacuum(dry_run=False, full=True)


RECIPES: Recipes = {
    **{format_name: {"read": recipe(read_folder)} for format_name in ("iceberg", "hive-parquet", "hive-orc")},
    "delta": {
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
        "compact": recipe(compact),
        "expire": recipe(expire),
        "remove orphans": recipe(remove_orphans),
    },
}
