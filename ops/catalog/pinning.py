"""Gives Iceberg's snapshots tags, so that no expiry takes away what a commit names."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import readable
from lakehouse.catalog.documents import Document, table_format
from lakehouse.catalog.names import DEFAULT_CATALOG, Name
from ops.clients import Files
from ops.outcome import Finding, Outcome
from ops.sql.asked import Asked
from ops.sql.verb import ENGINES
from ops.status.placement import Cluster

_AT_ONCE = 16
_DAY_MS = 24 * 3600 * 1000
_SECONDS = 3600.0


@dataclass(frozen=True)
class Pin:
    """A snapshot that is to stay: its table, its number, and the statement that says so to Spark."""

    table: Name
    snapshot: int
    statement: str


def pin(cluster: Cluster, tables: Iterable[tuple[Name, Document]], days: int) -> tuple[Finding, ...]:
    """Tag the current snapshot of each Iceberg table for so many days; return what failed.

    One that is tagged for as long already is left as it is.
    """
    found = [(name, said) for name, said in tables if table_format(said) == "iceberg"]
    files, now = Files.of(cluster), int(time.time() * 1000)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        metadata = pool.map(
            lambda one: readable.iceberg(str(one[1]["parameters"]["metadata_location"]), files), found
        )
        pins = [
            made
            for (name, _), said in zip(found, metadata, strict=True)
            if name.catalog == DEFAULT_CATALOG and (made := wanted(name, said, now, days))
        ]
    command = f".venv/bin/lakehouse sql --engine spark -i {cluster.inventory.path} ..."
    return tuple(
        Finding("catalog.unpinned", Outcome.DEGRADED, str(one.table), why, command)
        for one, why in _told(cluster, pins)
    )


def wanted(name: Name, metadata: Mapping[str, Any], now: int, days: int) -> Pin | None:
    """Return the tag that a table needs at a time in milliseconds; None where it has one, or no row.

    Iceberg counts the age of a tag from the snapshot's time on, not from the tag's.
    """
    snapshot = readable.snapshot(metadata)
    if snapshot is None:
        return None
    number, age = int(snapshot["snapshot-id"]), now - int(snapshot["timestamp-ms"])
    tag = f"lakehouse-{number}"
    there = metadata.get("refs", {}).get(tag)
    if there and int(there.get("max-ref-age-ms") or age + days * _DAY_MS) >= age + (days - 1) * _DAY_MS:
        return None
    kept = math.ceil(age / _DAY_MS) + days
    return Pin(
        name,
        number,
        f"ALTER TABLE iceberg.`{name.database}`.`{name.table}` CREATE OR REPLACE TAG `{tag}`"
        f" AS OF VERSION {number} RETAIN {kept} DAYS",
    )


def _told(cluster: Cluster, pins: list[Pin]) -> Iterator[tuple[Pin, str]]:
    """Have Spark run the statements in one session; give those that fail, and why."""
    engine, left = ENGINES["spark"], pins
    [host, *_] = cluster.inventory.group(engine.group)
    person = str(cluster.variable("lakehouse_users")[engine.user])
    while left:
        said = engine.ask(Asked(cluster, host, person, [one.statement for one in left], _SECONDS))
        if not said.complaint:
            return
        # The rest of a silent engine would be as silent.
        failed = left[len(said.results) :] if said.silent or said.late else [left[len(said.results)]]
        yield from ((one, said.complaint) for one in failed)
        left = left[len(said.results) + len(failed) :]
