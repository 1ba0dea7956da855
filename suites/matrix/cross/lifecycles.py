"""The life of a table by each writer of its format: it is made, gets a column with a row, and is dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa
from deltalake import write_deltalake
from pyiceberg.types import StringType

from suites.matrix.cross.data_types import TEXT
from suites.matrix.cross.dialects import DIALECTS
from suites.matrix.cross.engines import CLAUSES, DELTA_RS, FLINK, POLARS, PYICEBERG, SPARK, TRINO, Engines
from suites.testbed.databases import Table
from suites.testbed.formats import DELTA, HIVE_PARQUET, ICEBERG, Format

Act = Callable[[Engines, Table], object]

FIRST = pa.table({"id": pa.array([1], pa.int32())})
ADDED = pa.table({"id": pa.array([2], pa.int32()), "note": ["added"]})


@dataclass(frozen=True)
class Lifecycle:
    """What a writer does with a table; one that knows no catalog leaves the dropping to Spark.

    `keeps`: a table that it made is external, so that its files stay when another drops it. `alters`: its
    change adds a column; otherwise it adds a row alone.
    """

    make: Act
    change: Act
    drop: Act
    keeps: bool = False
    alters: bool = True


def _sql(fmt: Format, engine: str, drop: str = "", add: str = "ADD COLUMN note {type}") -> Lifecycle:
    """Return what an SQL engine does; `drop` follows DROP TABLE, `add` ALTER TABLE."""
    clause = CLAUSES.get((fmt.name, engine), "")
    column = add.format(type=DIALECTS[engine].type(TEXT))

    def make(engines: Engines, table: Table) -> None:
        engines.sql(engine, f"CREATE TABLE {table.full(engine)} (id INT){clause}")
        engines.sql(engine, f"INSERT INTO {table.full(engine)} VALUES (1)")

    def change(engines: Engines, table: Table) -> None:
        engines.sql(engine, f"ALTER TABLE {table.full(engine)} {column}")
        engines.sql(engine, f"INSERT INTO {table.full(engine)} VALUES (2, 'added')")

    def remove(engines: Engines, table: Table) -> None:
        engines.sql(engine, f"DROP TABLE {table.full(engine)}{drop}")

    return Lifecycle(make, change, remove)


def _another_row(engines: Engines, table: Table) -> None:
    engines.sql(FLINK, f"INSERT INTO {table.full(FLINK)} VALUES (2)")


def _pyiceberg_make(engines: Engines, table: Table) -> None:
    engines.clients.iceberg.create_table(table.short, FIRST.schema).append(FIRST)


def _pyiceberg_change(engines: Engines, table: Table) -> None:
    theirs = engines.clients.iceberg.load_table(table.short)
    with theirs.update_schema() as change:
        change.add_column("note", StringType())
    theirs.append(ADDED)


def _client_make(engines: Engines, table: Table) -> None:
    engines.clients.create(f"delta.{table.short}", FIRST)


def _delta_rs_change(engines: Engines, table: Table) -> None:
    write_deltalake(engines.clients.delta(table.short), ADDED, mode="append", schema_mode="merge")


def _polars_change(engines: Engines, table: Table) -> None:
    added: Any = pl.DataFrame(ADDED)
    merged = {"schema_mode": "merge"}
    added.write_delta(engines.clients.delta(table.short), mode="append", delta_write_options=merged)


# Without the word PURGE Spark forgets an Iceberg table and keeps its files.
_SPARK_ICEBERG = _sql(ICEBERG, SPARK, drop=" PURGE")
_SPARK_DELTA = _sql(DELTA, SPARK)
_DELTA_RS = Lifecycle(_client_make, _delta_rs_change, _SPARK_DELTA.drop, keeps=True)
LIFECYCLES: Mapping[tuple[str, str], Lifecycle] = {
    (ICEBERG.name, SPARK): _SPARK_ICEBERG,
    (ICEBERG.name, TRINO): _sql(ICEBERG, TRINO),
    (ICEBERG.name, FLINK): _sql(ICEBERG, FLINK, add="ADD note {type}"),
    # PyIceberg 0.12 has no way to remove a table's files: purge_table is not implemented.
    (ICEBERG.name, PYICEBERG): Lifecycle(_pyiceberg_make, _pyiceberg_change, _SPARK_ICEBERG.drop),
    (DELTA.name, SPARK): _SPARK_DELTA,
    (DELTA.name, DELTA_RS): _DELTA_RS,
    (DELTA.name, POLARS): replace(_DELTA_RS, change=_polars_change),
    (HIVE_PARQUET.name, SPARK): _sql(HIVE_PARQUET, SPARK, add="ADD COLUMNS (note {type})"),
    (HIVE_PARQUET.name, TRINO): _sql(HIVE_PARQUET, TRINO),
    # Its ALTER would turn the table into text files: cells.yml.
    (HIVE_PARQUET.name, FLINK): replace(
        _sql(HIVE_PARQUET, FLINK),
        change=_another_row,
        alters=False,
    ),
}
