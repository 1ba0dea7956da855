"""Gives Iceberg's snapshots tags, so that no expiry takes away what a commit names."""

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
from ops.clients import Files
from ops.outcome import Finding, Outcome
from ops.sql.engines import ENGINES
from ops.sql.query import Query
from ops.status.placement import Cluster

_AT_ONCE = 16
_DAY_MS = 24 * 3600 * 1000
_SECONDS = 3600.0
_OTHER_CATALOG = (
    f"no tag: Spark's catalog iceberg has tables of the catalog {DEFAULT_CATALOG} alone, and this is of "
)


@dataclass(frozen=True)
class Pin:
    """A snapshot that is to stay: its table, its number, and the statement that says so to Spark."""

    table: Name
    snapshot: int
    statement: str


@dataclass(frozen=True)
class Pinned:
    """Which state of its files each table had that was looked at, and the findings of those without a tag."""

    states: Mapping[Name, Any]
    findings: tuple[Finding, ...]


def pin(cluster: Cluster, tables: Iterable[tuple[Name, Document]], days: int) -> Pinned:
    """Tag the current snapshot of each Iceberg table for so many days; return what is not tagged, and why.

    One that is tagged for as long already is left as it is. LakehouseError where HDFS does not answer.
    """
    found = [(name, said) for name, said in tables if table_format(said) == "iceberg"]
    path = cluster.inventory.path
    own = [(name, said) for name, said in found if name.catalog == DEFAULT_CATALOG]
    pins, damaged = pins_of(own, Files.of(cluster), int(time.time() * 1000), days)
    spark, check = (
        f".venv/bin/lakehouse {verb} -i {path}" for verb in ("sql --engine spark", "catalog check")
    )
    findings = (
        *(
            _unpinned(name, f"{_OTHER_CATALOG}{name.catalog}", f"{spark} ...")
            for name, _ in found
            if name.catalog != DEFAULT_CATALOG
        ),
        *(_unpinned(name, why, check) for name, why in damaged),
        *(_unpinned(one.table, why, f"{spark} ...") for one, why in _told(cluster, pins)),
    )
    return Pinned({name: said.get(DATA) for name, said in found}, findings)


def pins_of(
    tables: Sequence[tuple[Name, Document]], files: readable.Files, now: int, days: int
) -> tuple[list[Pin], list[tuple[Name, str]]]:
    """Return the tags that Iceberg tables need at a time in milliseconds, and why which have none."""

    def look(table: tuple[Name, Document]) -> Pin | str | None:
        name, said = table
        try:
            metadata = readable.iceberg(str(said["parameters"]["metadata_location"]), files)
        except readable.DamagedError as error:
            return str(error)
        return wanted(name, metadata, now, days)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looks = list(zip(tables, pool.map(look, tables), strict=True))
    damaged = [(name, found) for (name, _), found in looks if isinstance(found, str)]
    return [found for _, found in looks if isinstance(found, Pin)], damaged


def pin_rest(
    cluster: Cluster, first: Pinned, committed: Iterable[tuple[Name, Document]], days: int
) -> tuple[Finding, ...]:
    """Tag what a commit has and the first look had not: tables were written while Spark was at work.

    Returns what is not tagged of all tables of the commit.
    """
    # A tag is another state of the files, too: its table is looked at, and needs no second one.
    rest = [(name, said) for name, said in committed if first.states.get(name) != said.get(DATA)]
    again = {str(name) for name, _ in rest}
    return (*(one for one in first.findings if one.where not in again), *pin(cluster, rest, days).findings)


def _unpinned(name: Name, why: str, command: str) -> Finding:
    return Finding("catalog.unpinned", Outcome.DEGRADED, str(name), why, command)


def wanted(name: Name, metadata: Mapping[str, Any], now: int, days: int) -> Pin | None:
    """Return the tag that a table needs at a time in milliseconds; None where it has one, or no row.

    Iceberg counts the age of a tag from the snapshot's time on, not from the tag's.
    """
    snapshot = readable.snapshot(metadata)
    if snapshot is None:
        return None
    number, age = int(snapshot["snapshot-id"]), now - int(snapshot["timestamp-ms"])
    tag = f"lakehouse-{number}"
    there = (metadata.get("refs") or {}).get(tag)
    if there and int(there.get("max-ref-age-ms") or age + days * _DAY_MS) >= age + (days - 1) * _DAY_MS:
        return None
    kept = math.ceil(age / _DAY_MS) + days
    return Pin(
        name,
        number,
        f"ALTER TABLE iceberg.{quoted(name.database)}.{quoted(name.table)} CREATE OR REPLACE TAG `{tag}`"
        f" AS OF VERSION {number} RETAIN {kept} DAYS",
    )


def _told(cluster: Cluster, pins: list[Pin]) -> Iterator[tuple[Pin, str]]:
    """Have Spark run the statements in one session; give those that fail, and why."""
    engine, left = ENGINES["spark"], pins
    [host, *_] = cluster.inventory.group(engine.group)
    person = str(cluster.variable("lakehouse_users")[engine.user])
    while left:
        said = engine.ask(Query(cluster, host, person, [one.statement for one in left], _SECONDS))
        if not said.complaint:
            return
        # The rest of a silent engine would be as silent.
        failed = left[len(said.results) :] if said.silent or said.late else [left[len(said.results)]]
        yield from ((one, said.complaint) for one in failed)
        left = left[len(said.results) + len(failed) :]
