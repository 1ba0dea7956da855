"""What a run of the census writes: the keys that differ from the previous run. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakehouse.census import contents, filters
from lakehouse.census.collect import Outcome
from lakehouse.census.contents import TableName
from lakehouse.census.delta import Log
from lakehouse.census.filters import Filter
from lakehouse.census.model import GENERAL_INFO, Key


@dataclass(frozen=True)
class Summary:
    """An outcome with the digest of each key in place of its units, and their number."""

    name: TableName
    unchanged: bool = False
    failed: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    units: int = 0
    log: Log | None = None
    unavailable: str = ""
    version: str = ""


@dataclass(frozen=True)
class Changes:
    """Keys to overwrite, keys to delete, and tables that are gone."""

    overwritten: frozenset[Key] = frozenset()
    deleted: frozenset[Key] = frozenset()
    dropped: tuple[TableName, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.overwritten or self.deleted or self.dropped)

    def delete_filters(self) -> list[Filter]:
        """Return filters on keys of what is deleted."""
        keys: dict[tuple[str, str, str], list[str]] = {}
        for key in sorted(self.deleted):
            keys.setdefault(key[:3], []).append(key.metadata_key)
        listed: list[Filter] = [
            filters.all_of(*_of_table(*table), filters.is_in("metadata_key", names))
            for table, names in keys.items()
        ]
        return [*listed, of_tables(self.dropped)] if self.dropped else listed


def summary(outcome: Outcome) -> Summary:
    """Return an outcome without its units."""
    return Summary(
        outcome.name,
        outcome.unchanged,
        outcome.failed,
        contents.digests(outcome.units),
        len(outcome.units),
        outcome.log,
        outcome.unavailable,
        outcome.version,
    )


def versions(rows: Iterable[Mapping[str, Any]]) -> dict[TableName, str]:
    """Return the version of each table that the previous run has stored in its unit."""
    return {
        name_of(row): str(contents.facts_of(row["additional_metadata"]).get("version", "")) for row in rows
    }


def digests(rows: Iterable[Mapping[str, Any]]) -> dict[Key, str]:
    """Return the digest of each key that the previous run has stored, of rows with keys and metadata."""
    return {
        Key(row["storage_plugin"], row["workspace"], row["table_name"], row["metadata_key"]):
            contents.digest_of(row["additional_metadata"])
        for row in rows
    }  # fmt: skip


def name_of(row: Mapping[str, Any]) -> TableName:
    """Return the table of a row with keys."""
    return TableName(row["storage_plugin"], row["workspace"], row["table_name"])


def changed_names(summaries: Iterable[Summary]) -> list[TableName]:
    """Return the tables that have units to compare with the previous run's."""
    return [entry.name for entry in summaries if entry.digests]


def changes(
    summaries: Sequence[Summary], present: Collection[TableName], stored: Mapping[TableName, str],
    stored_digests: Mapping[Key, str],
) -> Changes:  # fmt: skip
    """Return what differs: a table that failed or is unchanged keeps its units.

    `stored` are the versions of the previous run; `stored_digests` have the keys of tables that have changed.
    """
    overwritten, deleted = set(), set()
    known_keys: dict[TableName, set[Key]] = {}
    for key in stored_digests:
        known_keys.setdefault(TableName(*key[:3]), set()).add(key)
    for entry in summaries:
        if not entry.digests:
            continue
        keys = {_key(entry.name, name): digest for name, digest in entry.digests.items()}
        overwritten |= {
            key
            for key, digest in keys.items()
            if stored_digests.get(key) != digest
            or (key.metadata_key == GENERAL_INFO and stored.get(entry.name) != entry.version)
        }
        deleted |= known_keys.get(entry.name, set()) - keys.keys()
    dropped = sorted(set(stored) - set(present), key=str)
    return Changes(frozenset(overwritten), frozenset(deleted), tuple(dropped))


def of_tables(names: Iterable[TableName]) -> Filter:
    """Return the filter of the units of tables."""
    by_database: dict[tuple[str, str], list[str]] = {}
    for name in names:
        by_database.setdefault((name.catalog, name.database), []).append(name.table)
    return filters.any_of(
        *(
            filters.all_of(
                filters.equal("storage_plugin", catalog),
                filters.equal("workspace", database),
                filters.is_in("table_name", sorted(tables)),
            )
            for (catalog, database), tables in sorted(by_database.items())
        )
    )


def _of_table(catalog: str, database: str, table: str) -> list[Filter]:
    return [
        filters.equal("storage_plugin", catalog),
        filters.equal("workspace", database),
        filters.equal("table_name", table),
    ]


def _key(name: TableName, metadata_key: str) -> Key:
    return Key(name.catalog, name.database, name.table, metadata_key)
