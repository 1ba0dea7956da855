"""Tag Iceberg snapshots, so that an expiry keeps the snapshots that a commit refers to."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import readable
from lakehouse.catalog.ddl import quoted
from lakehouse.catalog.diff import DATA
from lakehouse.catalog.documents import Document, table_format
from lakehouse.catalog.names import DEFAULT_CATALOG, Name
from lakehouse.clients import Files
from lakehouse.model.placement import Cluster
from lakehouse.outcome import Finding, Outcome
from lakehouse.sql.engines import ENGINES
from lakehouse.sql.query import Query

_AT_ONCE = 16
_DAY_MS = 24 * 3600 * 1000
_SECONDS = 3600.0
_OTHER_CATALOG = (
    f"no tag: Spark's catalog iceberg has tables of the catalog {DEFAULT_CATALOG} alone, and this is of "
)


@dataclass(frozen=True)
class Pin:
    """A snapshot to protect: its table, its number, and the statement for Spark that tags it."""

    table: Name
    snapshot: int
    statement: str


@dataclass(frozen=True)
class PinResult:
    """The state of the files of each checked table, and the findings of tables without a tag."""

    states: Mapping[Name, Any]
    findings: tuple[Finding, ...]


def pin(cluster: Cluster, tables: Iterable[tuple[Name, Document]], days: int) -> PinResult:
    """Tag the current snapshot of each Iceberg table for so many days, unless it has such a tag already.

    LakehouseError if HDFS does not answer.
    """
    iceberg = [(name, document) for name, document in tables if table_format(document) == "iceberg"]
    path = cluster.inventory.path
    taggable = [(name, document) for name, document in iceberg if name.catalog == DEFAULT_CATALOG]
    pins, damaged = pins_of(taggable, Files.of(cluster), int(time.time() * 1000), days)
    spark, check = (
        f".venv/bin/lakehouse {verb} -i {path}" for verb in ("sql --engine spark", "catalog check")
    )
    findings = (
        *(
            _unpinned(name, f"{_OTHER_CATALOG}{name.catalog}", f"{spark} ...")
            for name, _ in iceberg
            if name.catalog != DEFAULT_CATALOG
        ),
        *(_unpinned(name, why, check) for name, why in damaged),
        *(_unpinned(failed.table, why, f"{spark} ...") for failed, why in _failed_pins(cluster, pins)),
    )
    return PinResult({name: document.get(DATA) for name, document in iceberg}, findings)


def pins_of(
    tables: Sequence[tuple[Name, Document]], files: readable.Files, now: int, days: int
) -> tuple[list[Pin], list[tuple[Name, str]]]:
    """Return the tags that Iceberg tables need at a time in milliseconds, and the damaged tables with why."""

    def check(table: tuple[Name, Document]) -> Pin | str | None:
        name, document = table
        try:
            metadata = readable.iceberg(str(document["parameters"]["metadata_location"]), files)
        except readable.DamagedError as error:
            return str(error)
        return needed_tag(name, metadata, now, days)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(zip(tables, pool.map(check, tables), strict=True))
    damaged = [(name, result) for (name, _), result in results if isinstance(result, str)]
    return [result for _, result in results if isinstance(result, Pin)], damaged


def pin_rest(
    cluster: Cluster, first: PinResult, committed: Iterable[tuple[Name, Document]], days: int
) -> tuple[Finding, ...]:
    """Tag the tables of a commit that were written while the `first` tags were created.

    Returns the findings of all tables of the commit without a tag.
    """
    # A tag changes the state of the files too: its table is checked again, and needs no second tag.
    rest = [(name, table) for name, table in committed if first.states.get(name) != table.get(DATA)]
    checked_again = {str(name) for name, _ in rest}
    earlier = (finding for finding in first.findings if finding.where not in checked_again)
    return (*earlier, *pin(cluster, rest, days).findings)


def _unpinned(name: Name, why: str, command: str) -> Finding:
    return Finding("catalog.unpinned", Outcome.DEGRADED, str(name), why, command)


def needed_tag(name: Name, metadata: Mapping[str, Any], now: int, days: int) -> Pin | None:
    """Return the tag that a table needs at a time in milliseconds; None if it has one, or no row.

    The age of a tag is that of its snapshot in Iceberg, not that of the tag.
    """
    snapshot = readable.snapshot(metadata)
    if snapshot is None:
        return None
    number, age = int(snapshot["snapshot-id"]), now - int(snapshot["timestamp-ms"])
    tag = f"lakehouse-{number}"
    ref = (metadata.get("refs") or {}).get(tag)
    if ref and int(ref.get("max-ref-age-ms") or age + days * _DAY_MS) >= age + (days - 1) * _DAY_MS:
        return None
    days_kept = math.ceil(age / _DAY_MS) + days
    return Pin(
        name,
        number,
        f"ALTER TABLE iceberg.{quoted(name.database)}.{quoted(name.table)} CREATE OR REPLACE TAG `{tag}`"
        f" AS OF VERSION {number} RETAIN {days_kept} DAYS",
    )


def _failed_pins(cluster: Cluster, pins: list[Pin]) -> Iterator[tuple[Pin, str]]:
    """Run the statements in one session of Spark; give those that fail, and why."""
    engine, remaining = ENGINES["spark"], pins
    [host, *_] = cluster.inventory.group(engine.group)
    user = str(cluster.variable("lakehouse_users")[engine.user])
    while remaining:
        statements = [pin.statement for pin in remaining]
        answer = engine.ask(Query(cluster, host, user, statements, _SECONDS))
        if not answer.complaint:
            return
        succeeded = len(answer.results)
        # An engine that does not answer fails all further statements.
        failed = remaining[succeeded:] if answer.silent or answer.late else [remaining[succeeded]]
        yield from ((pin, answer.complaint) for pin in failed)
        remaining = remaining[succeeded + len(failed) :]
