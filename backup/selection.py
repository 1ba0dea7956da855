"""One table of a backup, or one database: its files, its entries in the catalog, and how they come back."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from backup import reconcile
from backup.config import BackupError, BackupUsageError, Settings
from backup.manifest import Backup
from backup.tables import Inside, Table
from backup.tree import Entry
from plugins.module_utils.lakehouse import hdfs_tree

# Of an Iceberg table whose files are not below its own folder.
_PLACES = ("write.data.path", "write.metadata.path")


@dataclass(frozen=True)
class Chosen:
    """Tables of a backup with their entries in the catalog, and the entries of their databases."""

    tables: tuple[Table, ...]
    entries: tuple[Mapping[str, Any], ...]
    databases: tuple[Mapping[str, Any], ...]

    def json(self) -> dict[str, Any]:
        """For the machine that writes the catalog."""
        return {
            "tables": [table.json() for table in self.tables],
            "entries": list(self.entries),
            "databases": list(self.databases),
        }


def choose(backup: Backup, table: str, database: str) -> Chosen:
    """Return a table, or all of a database; BackupUsageError with the nearest name where there is none."""
    found = [one for one in backup.tables if (str(one) == table if table else one.database == database)]
    wanted = {(one.database, one.name) for one in found}
    homes = {one.database for one in found} or {database}
    databases, entries, all_databases = [], {}, []
    for kind, row in backup.catalog():
        if kind == "database":
            all_databases.append(row["name"])
            if row["name"] in homes:
                databases.append(row)
        elif kind == "table" and (row["database"], row["name"]) in wanted:
            entries[row["database"], row["name"]] = {**row, "partitions": []}
        elif kind == "partition" and (row["database"], row["table"]) in wanted:
            if not (entry := entries.get((row["database"], row["table"]))):
                raise BackupError(f"{backup.name}: a partition comes before its table {row['table']}")
            own = {key: value for key, value in row.items() if key not in {"database", "table"}}
            entry["partitions"].append(own)
    if (table and not found) or not databases:
        near = difflib.get_close_matches(
            table or database, list(map(str, backup.tables)) if table else all_databases, n=1
        )
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise BackupUsageError(
            f"{backup.name} has no {'table' if table else 'database'} {table or database}{meant}"
        )
    return Chosen(tuple(found), tuple(entries.values()), tuple(databases))


def folders(settings: Settings, backup: Backup, chosen: Chosen, table: Table) -> tuple[str, ...]:
    """Return where the files of a table are, below the root; the first is its own folder."""
    inside = Inside(settings.root, backup.files, backup.entries)
    [entry] = [
        one for one in chosen.entries if (one["database"], one["name"]) == (table.database, table.name)
    ]
    places = [table.location, *(one["storage"]["location"] for one in entry["partitions"])]
    if table.format == "iceberg":
        places.append(table.metadata.rpartition("/")[0])
        places += [entry["parameters"][key] for key in _PLACES if key in entry["parameters"]]
    found: list[str] = []
    for place in places if table.format != "view" else ():
        path = inside.relative(place)
        if path is None:
            raise BackupError(f"{table}: {place} is not in {backup.name}")
        if not any(path == other or path.startswith(f"{other}/") for other in found):
            found.append(path)
    return tuple(found)


def files(settings: Settings, backup: Backup, chosen: Chosen) -> Iterator[Entry]:
    """Give the entries of all its files."""
    tops = tuple(top for table in chosen.tables for top in folders(settings, backup, chosen, table))
    yield from reconcile.below(backup.entries, tops).values() if tops else ()


def room(settings: Settings, backup: Backup, chosen: Chosen) -> dict[str, int]:
    """Return the bytes that its files take in HDFS, with every replica: a copy's, and of those it lacks."""
    lacking = (
        hdfs_tree.room(reconcile.missing(settings, backup, tops, keep=keep))
        for keep, tops in _by_kind(settings, backup, chosen)
    )
    return {"copy": hdfs_tree.room(files(settings, backup, chosen)), "lacking": sum(lacking)}


def _by_kind(settings: Settings, backup: Backup, chosen: Chosen) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Give the folders of the tables whose newer files stay, and of those whose files are the table."""
    for keep in (True, False):
        tops = tuple(
            top
            for table in chosen.tables
            if (table.format == "iceberg") is keep
            for top in folders(settings, backup, chosen, table)
        )
        if tops:
            yield keep, tops


def bring(settings: Settings, backup: Backup, chosen: Chosen, into: str) -> dict[str, Any]:
    """Bring the files of its tables back, those of the only one into another folder if there is one named.

    The files of an Iceberg table have names that are never used again, so that what is there stays. Those of
    Delta and Hive are the table: what is newer is set aside.
    """
    done = {"written": 0, "bytes": 0, "aside": 0, "place": ""}
    inside = Inside(settings.root, backup.files, backup.entries)
    homes = (inside.relative(str(one["location"])) for one in chosen.databases)
    reconcile.make(settings, backup, tuple(home for home in homes if home))
    place = inside.relative(into) if into else ""
    if place is None:
        raise BackupError(f"{into} is not below {settings.root}")
    for keep, tops in _by_kind(settings, backup, chosen):
        one = reconcile.reconcile(settings, backup, tops, keep=keep, into=place)
        done = {
            "written": done["written"] + one["written"],
            "bytes": done["bytes"] + one["bytes"],
            "aside": done["aside"] + one["aside"],
            "place": one["place"] or done["place"],
        }
    return done


def named(chosen: Chosen, name: str) -> tuple[Table, ...]:
    """Return the tables under the names under which they came back."""
    if not name:
        return chosen.tables
    database, _, table = name.partition(".")
    return tuple(replace(one, database=database, name=table) for one in chosen.tables)
