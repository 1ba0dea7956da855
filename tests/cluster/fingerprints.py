"""What tells whether tables are the same: rows and checksums, as Trino reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suites.testbed.engines.trino import Trino

_SCHEMAS = ("iceberg.nycflights", "delta.nycflights_delta")


def fingerprints(trino: Trino) -> dict[str, Sequence[Any]]:
    """Rows and checksum of every table that the kit has loaded."""
    found: dict[str, Sequence[Any]] = {}
    for schema in _SCHEMAS:
        for (name,) in trino.sql(f"show tables from {schema}"):
            columns = [row[0] for row in trino.sql(f"show columns from {schema}.{name}")]
            sums = ", ".join(f'to_hex(checksum("{column}"))' for column in columns)
            [found[f"{schema}.{name}"]] = trino.sql(f"select count(*), {sums} from {schema}.{name}")  # noqa: S608
    assert found
    return found
