"""Contents of a Hive table: the partitions of the metastore, and the files in their folders."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakehouse.catalog import partition_names
from lakehouse.census import files as hdfs
from lakehouse.census.contents import Contents, DataFile, Partition
from lakehouse.census.files import DamagedError, Entry, Files
from lakehouse.census.metastore import HivePartition, Table
from plugins.module_utils.lakehouse.webhdfs import path_of

# Of 64 bits.
_STATISTIC = re.compile(r"[0-9]{1,18}")
# Names in a table's facts.
_SHOWN = 20
_FORMATS = {"parquet": "parquet", "orc": "orc", "avro": "avro", "rcfile": "rcfile", "text": "text"}


@dataclass(frozen=True)
class Listing:
    """The files and folders of a table by path, and its partitions without a folder."""

    entries: Mapping[str, Entry]
    missing: frozenset[str] = frozenset()


def look(table: Table, files: Files) -> Listing:
    """Return the files and folders of a table and of its partitions elsewhere; DamagedError."""
    if table.failed:
        raise DamagedError(f"its partitions could not be listed: {table.failed}")
    if not table.location:
        raise DamagedError("it has no location")
    entries = _by_path(hdfs.below(files, table.location))
    root = _plain(table.location)
    missing = set()
    for partition in table.partitions:
        place = _plain(partition.location)
        if place in entries:
            continue
        outside = None if _is_below(place, root) else files.entries(place)
        if outside is None:
            missing.add(place)
        else:
            entries[place] = Entry(place, folder=True)
            entries |= _by_path(hdfs.below(files, place))
    return Listing(entries, frozenset(missing))


def version(table: Table, listing: Listing) -> str:
    """Return a digest of the files, the partitions and the columns of a table."""
    digest = hashlib.sha256()
    for path, entry in sorted(listing.entries.items()):
        row = (path, entry.bytes, entry.modified, entry.folder)
        digest.update(repr(row).encode())
    partitions = [(partition.values, partition.location) for partition in table.partitions]
    rest = (sorted(partitions), sorted(listing.missing), table.columns, table.partition_keys, table.location)
    digest.update(repr(rest).encode())
    return digest.hexdigest()[:32]


def contents(table: Table, listing: Listing) -> Contents:
    """Return the contents of a table; the rows of its files are unknown."""
    keys = [name for name, _ in table.partition_keys]
    kind = _format(table.input_format)
    partitions = [_partition(keys, partition, listing) for partition in table.partitions]
    by_folder = {_plain(partition.location): partition.values for partition in partitions}
    data = list(_files(kind, by_folder if keys else None, listing))
    orphans = sorted(_orphans(table, keys, by_folder, listing))
    missing = sorted(listing.missing)
    facts = {
        "format": "hive",
        "file_formats": [kind],
        "partitions": len(table.partitions),
        "partitions_without_directory": len(missing),
        "partitions_without_directory_names": missing[:_SHOWN],
        "directories_without_partition": len(orphans),
        "directories_without_partition_names": orphans[:_SHOWN],
        "statistics_rows": _number(table.parameters.get("numRows")),
        "statistics_files": _number(table.parameters.get("numFiles")),
        "last_commit": max((file.modified or 0 for file in data), default=0) or None,
    }
    columns = [{"name": name, "type": type_} for name, type_ in (*table.columns, *table.partition_keys)]
    return Contents(
        name=table.name,
        table_type="HIVE",
        location=table.location,
        owner=table.owner,
        schema=json.dumps({"type": "struct", "fields": columns}, separators=(",", ":")),
        partition_keys=dict.fromkeys(keys, "identity"),
        modified=facts["last_commit"] if isinstance(facts["last_commit"], int) else None,
        files=sorted(data, key=lambda file: file.path),
        partitions=partitions,
        facts=facts,
    )


def _partition(keys: list[str], partition: HivePartition, listing: Listing) -> Partition:
    if len(keys) != len(partition.values):
        raise DamagedError(f"a partition has {len(partition.values)} values of {len(keys)} keys")
    facts = {
        "directory": _plain(partition.location) not in listing.missing,
        "statistics_files": _number(partition.parameters.get("numFiles")),
        "statistics_rows": _number(partition.parameters.get("numRows")),
    }
    return Partition(tuple(zip(keys, partition.values, strict=True)), partition.location, facts)


def _files(
    kind: str, folders: Mapping[str, tuple[tuple[str, str], ...]] | None, listing: Listing
) -> Iterator[DataFile]:
    """Yield the files of a table; of one with partitions those that are in one of their folders."""
    for entry in listing.entries.values():
        if entry.folder:
            continue
        values: tuple[tuple[str, str], ...] = ()
        if folders is not None:
            folder = _folder_of(entry.path, folders)
            if folder is None:
                continue
            values = folders[folder]
        yield DataFile(entry.path, entry.bytes, values, format=kind, modified=entry.modified)


def _folder_of(path: str, folders: Mapping[str, object]) -> str | None:
    """Return the folder of a partition that a file is in; None where it is in none."""
    while path.strip("/"):
        path = posixpath.dirname(path)
        if path in folders:
            return path
    return None


def _orphans(table: Table, keys: list[str], folders: Mapping[str, object], listing: Listing) -> Iterator[str]:
    """Yield folders that are named as a partition, and are none."""
    root = _plain(table.location)
    for path, entry in listing.entries.items():
        name = path.removeprefix(f"{root}/")
        words = [word.partition("=") for word in name.split("/")]
        # Folders keep the letters of a key, the metastore makes them small.
        names = [word[0].lower() for word in words]
        if entry.folder and path not in folders and _is_below(path, root) and names == keys:
            yield partition_names.name(keys, partition_names.values(name))


def _by_path(entries: Iterator[Entry]) -> dict[str, Entry]:
    return {entry.path: entry for entry in entries}


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/")


def _plain(uri: str) -> str:
    return path_of(uri) or uri


def _format(input_format: str) -> str:
    words = input_format.rpartition(".")[2].lower()
    return next((kind for word, kind in _FORMATS.items() if word in words), words or "unknown")


def _number(text: str | None) -> int | None:
    """Return a statistic of the metastore; None where there is none, or text of a user."""
    return int(text) if text and _STATISTIC.fullmatch(text) else None
