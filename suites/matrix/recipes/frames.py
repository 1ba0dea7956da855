"""Orders as Arrow, for the Python clients."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from suites.matrix.operations import COLUMNS
from suites.testbed.engines.facade import Row

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("customer", pa.string()),
        ("day", pa.date32()),
        ("amount", pa.decimal128(10, 2)),
    ]
)


def frame(*orders: Row) -> Any:
    """Return orders as an Arrow table."""
    return pa.Table.from_pylist([dict(zip(COLUMNS, order, strict=True)) for order in orders], SCHEMA)


def with_ids_from(first: int, orders: Any) -> Any:
    """Return the orders with other ids: `first` is added to each."""
    ids = pa.array([number + first for number in orders["id"].to_pylist()], pa.int32())
    return orders.set_column(orders.column_names.index("id"), "id", ids)


def widened(orders: Any) -> Any:
    """Return the orders with ids of 64 bits."""
    return orders.set_column(orders.column_names.index("id"), "id", orders["id"].cast(pa.int64()))


def rows(answer: Any) -> list[Row]:
    """Return the rows of anything that speaks Arrow, ordered by the first column."""
    return sorted(tuple(row.values()) for row in pa.table(answer).to_pylist())
