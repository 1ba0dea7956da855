"""A table or a database of a backup: its files, its entries in the catalog, and their restore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from backup import reconcile
from backup.config import BackupError, BackupUsageError, Settings
from backup.manifest import Backup
from backup.tables import Inside, Table
from backup.tree import Entry
from plugins.module_utils.lakehouse import hdfs_tree
from plugins.module_utils.lakehouse.nearest import did_you_mean

# Properties of Iceberg tables whose files are outside their own folder.
_PLACES = ("write.data.path", "write.metadata.path")


@dataclass(frozen=True)
class Selection:
    """Tables of a backup with their entries in the catalog, and the entries of their databases."""

    tables: tuple[Table, ...]
    entries: tuple[Mapping[str, Any], ...]
    databases: tuple[Mapping[str, Any], ...]

    def json(self) -> dict[str, Any]:
        """The document for the machine that writes the catalog."""
        return {
            "tables": [table.json() for table in self.tables],
            "entries": list(self.entries),
            "databases": list(self.databases),
        }


def choose(backup: Backup, table: str, database: str) -> Selection:
    """Return a table, or all of a database; BackupUsageError with the nearest name if it does not exist."""
    matches = [row for row in backup.tables if (str(row) == table if table else row.database == database)]
    names = {(row.database, row.name) for row in matches}
    homes = {row.database for row in matches} or {database}
    databases, entries, all_databases = [], {}, []
    for kind, row in backup.catalog():
        if kind == "database":
            all_databases.append(row["name"])
            if row["name"] in homes:
                databases.append(row)
        elif kind == "table" and (row["database"], row["name"]) in names:
            entries[row["database"], row["name"]] = {**row, "partitions": []}
        elif kind == "partition" and (row["database"], row["table"]) in names:
            if not (entry := entries.get((row["database"], row["table"]))):
                raise BackupError(f"{backup.name}: a partition comes before its table {row['table']}")
            partition = {key: value for key, value in row.items() if key not in {"database", "table"}}
            entry["partitions"].append(partition)
    if (table and not matches) or not databases:
        meant = did_you_mean(table or database, map(str, backup.tables) if table else all_databases)
        raise BackupUsageError(
            f"{backup.name} has no {'table' if table else 'database'} {table or database}{meant}"
        )
    return Selection(tuple(matches), tuple(entries.values()), tuple(databases))


def folders(settings: Settings, backup: Backup, selection: Selection, table: Table) -> tuple[str, ...]:
    """Return the folders of a table, below the root; the first is its own."""
    inside = Inside(settings.root, backup.files, backup.entries)
    [entry] = [
        row for row in selection.entries if (row["database"], row["name"]) == (table.database, table.name)
    ]
    locations = [table.location, *(partition["storage"]["location"] for partition in entry["partitions"])]
    if table.format == "iceberg":
        locations.append(table.metadata.rpartition("/")[0])
        locations += [entry["parameters"][key] for key in _PLACES if key in entry["parameters"]]
    paths: list[str] = []
    for location in locations if table.format != "view" else ():
        path = inside.relative(location)
        if path is None:
            raise BackupError(f"{table}: {location} is not in {backup.name}")
        if not any(path == parent or path.startswith(f"{parent}/") for parent in paths):
            paths.append(path)
    return tuple(paths)


def files(settings: Settings, backup: Backup, selection: Selection) -> Iterator[Entry]:
    """Give the entries of all files of a selection."""
    tops = tuple(top for table in selection.tables for top in folders(settings, backup, selection, table))
    yield from reconcile.below(backup.entries, tops).values() if tops else ()


def room(settings: Settings, backup: Backup, selection: Selection) -> dict[str, int]:
    """Return bytes in HDFS, with every replica: of a copy of the files, and of the files that HDFS lacks."""
    lacking = (
        hdfs_tree.room(reconcile.missing(settings, backup, tops, keep=keep))
        for keep, tops in _by_kind(settings, backup, selection)
    )
    return {"copy": hdfs_tree.room(files(settings, backup, selection)), "lacking": sum(lacking)}


def _by_kind(
    settings: Settings, backup: Backup, selection: Selection
) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Give the folders of Iceberg tables, whose newer files stay, then those of Delta and Hive tables."""
    for keep in (True, False):
        tops = tuple(
            top
            for table in selection.tables
            if (table.format == "iceberg") is keep
            for top in folders(settings, backup, selection, table)
        )
        if tops:
            yield keep, tops


def bring(settings: Settings, backup: Backup, selection: Selection, into: str) -> dict[str, Any]:
    """Restore the files of the tables, those of a single table into the folder `into` if that is not empty.

    Iceberg never uses a file's name twice, so existing files stay. The files of Delta and Hive tables are the
    table: newer ones are moved aside.
    """
    total = {"written": 0, "bytes": 0, "aside": 0, "place": ""}
    inside = Inside(settings.root, backup.files, backup.entries)
    homes = (inside.relative(str(database["location"])) for database in selection.databases)
    reconcile.make(settings, backup, tuple(home for home in homes if home))
    place = inside.relative(into) if into else ""
    if place is None:
        raise BackupError(f"{into} is not below {settings.root}")
    for keep, tops in _by_kind(settings, backup, selection):
        result = reconcile.reconcile(settings, backup, tops, keep=keep, into=place)
        total = {
            "written": total["written"] + result["written"],
            "bytes": total["bytes"] + result["bytes"],
            "aside": total["aside"] + result["aside"],
            "place": result["place"] or total["place"],
        }
    return total


def named(selection: Selection, name: str) -> tuple[Table, ...]:
    """Return the tables with the names under which they were restored."""
    if not name:
        return selection.tables
    database, _, table = name.partition(".")
    return tuple(replace(row, database=database, name=table) for row in selection.tables)
