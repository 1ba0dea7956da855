"""Compare tables with a manifest in Trino: number of rows, and checksum as in backup/fingerprint.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from trino.dbapi import connect
from trino.exceptions import Error

from lakehouse.model.placement import Cluster
from plugins.module_utils.lakehouse.counting import counted

_TEXT = {
    "text": "cast({0} AS varchar)",
    "whole": "cast({0} AS varchar)",
    "real": "CASE WHEN abs(cast({0} AS double)) < 1e14 "
            "THEN cast(cast(floor(cast({0} AS double) * 1000) AS bigint) AS varchar) ELSE 'beyond' END",
    "time": "cast(cast(floor(to_unixtime({0})) AS bigint) AS varchar)",
}  # fmt: skip
_AT_ONCE = 3
# Trino's catalog of a format.
CATALOGS = {"iceberg": "iceberg", "delta": "delta", "hive": "hive"}


def expression(columns: Sequence[Sequence[str]]) -> str:
    """Return the expression of a checksum in Trino's SQL."""
    texts = [f"coalesce({_TEXT[kind].format(_quoted(name))}, '∅')" for name, kind in columns]
    # concat_ws needs at least two texts.
    line = texts[0] if len(texts) == 1 else f"concat_ws('|', {', '.join(texts)})"
    return f"coalesce(sum(crc32(to_utf8({line}))), 0)" if texts else "0"


def _quoted(name: str) -> str:
    """Quote an identifier for Trino's SQL."""
    return '"{}"'.format(name.replace('"', '""'))


def differences(cluster: Cluster, tables: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each table that differs from the manifest in Trino; none without Trino."""
    place = cluster.endpoint("trino_http")
    if place is None:
        return []
    user = str(cluster.variable("lakehouse_users")["trino"])

    def compare(table: Mapping[str, Any]) -> Iterator[str]:
        name = f"{table['database']}.{table['name']}"
        identifier = ".".join((CATALOGS[table["format"]], _quoted(table["database"]), _quoted(table["name"])))
        try:
            with connect(
                host=place.address, port=place.port, http_scheme=place.scheme, user=user, timezone="UTC"
            ) as connection:
                cursor = connection.cursor()
                cursor.execute(f"SELECT count(*), {expression(table['columns'])} FROM {identifier}")  # noqa: S608
                [(rows, checksum)] = cursor.fetchall()
        except (Error, OSError) as error:
            yield f"{name}: Trino cannot read it: {' '.join(str(error).split())[:200]}"
            return
        if (rows, checksum) != (table["rows"], table["checksum"]):
            expected = f"{table['rows']}, {table['checksum']}"
            yield f"{name}: Trino finds {counted(rows, 'row')}, checksum {checksum} ({expected})"

    counted_tables = [table for table in tables if table["rows"] is not None]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(chain.from_iterable(pool.map(lambda table: list(compare(table)), counted_tables)))
