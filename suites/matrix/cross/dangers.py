"""Delta features that another engine reads wrongly without a word, and what Python clients make of them."""

from __future__ import annotations

from dataclasses import dataclass

from suites.matrix.cross.engines import DELTA_RS, DUCKDB, POLARS
from suites.matrix.cross.limits import Limit, refused, wrong
from suites.testbed.engines.facade import Row


@dataclass(frozen=True)
class Danger:
    """A Delta feature: what switches it on and makes it show, which rows are right, and what is wrong."""

    feature: str
    properties: str
    statements: tuple[str, ...]
    rows: tuple[Row, ...]
    limit: Limit

    def __str__(self) -> str:
        return self.feature


WIDENING = Danger(
    "typeWidening",
    "'delta.enableTypeWidening' = 'true'",
    ("ALTER TABLE {table} ALTER COLUMN amount TYPE BIGINT", "INSERT INTO {table} VALUES (3, 4294967296)"),
    ((1, 1), (2, 2), (3, 4294967296)),
    wrong("the widened column is left out", "https://github.com/trinodb/trino/pull/22458"),
)
VECTORS = Danger(
    "deletionVectors",
    "'delta.enableDeletionVectors' = 'true'",
    ("DELETE FROM {table} WHERE id = 1",),
    ((2, 2),),
    wrong("deleted rows come back", "https://github.com/trinodb/trino/issues/30685"),
)
MAPPING = Danger(
    "columnMapping",
    "'delta.columnMapping.mode' = 'name'",
    ("ALTER TABLE {table} RENAME COLUMN amount TO price",),
    ((1, 1), (2, 2)),
    wrong("the renamed column is null", "https://github.com/delta-io/delta-rs/issues/930"),
)
DANGERS = (WIDENING, VECTORS, MAPPING)
CLIENTS = (DELTA_RS, DUCKDB, POLARS)
# What `lake.arrow`, `lake.sql` and `lake.polars` refuse; the rest they read right.
UNREAD = {
    WIDENING: refused(
        r"asks its readers for typeWidening", "https://github.com/delta-io/delta-kernel-rs/issues/623"
    )
}
# What deltalake's `to_pyarrow_table` refuses by itself.
_SCANNER = "https://github.com/delta-io/delta-rs/issues/2829"
UNSCANNED = {
    WIDENING: refused(r"reader features: \{'typeWidening'\}", _SCANNER),
    VECTORS: refused(r"reader features: \{'deletionVectors'\}", _SCANNER),
}
