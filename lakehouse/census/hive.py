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
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.webhdfs import path_of

# Of 64 bits.
_STATISTIC = re.compile(r"[0-9]{1,18}")
_STATISTICS = ("numFiles", "numRows")
# Names in a table's facts.
_SHOWN = 20
_FORMATS = {"parquet": "parquet", "orc": "orc", "avro": "avro", "rcfile": "rcfile", "text": "text"}


@dataclass(frozen=True)
class Listing:
    """The files and folders of a table by path, and its partitions without a folder."""

    entries: Mapping[str, Entry]
    missing: frozenset[str] = frozenset()


def listing(table: Table, files: Files) -> Listing:
    """Return the files and folders of a table and of its partitions elsewhere; DamagedError."""
    if table.failed:
        raise DamagedError(f"its partitions could not be listed: {table.failed}")
    if not table.location:
        raise DamagedError("it has no location")
    entries = _by_path(hdfs.below(files, table.location))
    missing = set()
    for partition in table.partitions:
        place = _plain(partition.location)
        if place in entries:
            continue
        # Elsewhere, or in a folder whose name is hidden.
        if files.entries(place) is None:
            missing.add(place)
        else:
            entries[place] = Entry(place, folder=True)
            entries |= _by_path(hdfs.below(files, place))
    return Listing(entries, frozenset(missing))


def version(table: Table, files: Listing) -> str:
    """Return a digest of the files, and of what the metastore has of a table and its partitions."""
    digest = hashlib.sha256()
    for path, entry in sorted(files.entries.items()):
        row = (path, entry.bytes, entry.modified, entry.folder, entry.id)
        digest.update(repr(row).encode())
    for partition in sorted(table.partitions, key=lambda partition: partition.values):
        parameters = sorted(partition.parameters.items())
        values = (partition.values, partition.location, partition.input_format, parameters)
        digest.update(repr(values).encode())
    statistics = [table.parameters.get(name) for name in _STATISTICS]
    rest = (
        sorted(files.missing), table.columns, table.partition_keys, table.location, table.input_format,
        statistics,
    )  # fmt: skip
    digest.update(repr(rest).encode())
    return digest.hexdigest()[:32]


def contents(table: Table, files: Listing) -> Contents:
    """Return the contents of a table; the rows of its files are unknown."""
    keys = [name for name, _ in table.partition_keys]
    partitions = [_partition(keys, partition, files) for partition in table.partitions]
    by_folder = {_plain(partition.location): partition for partition in partitions}
    formats = {
        _plain(partition.location): _format(partition.input_format or table.input_format)
        for partition in table.partitions
    }
    if keys:
        data = list(_partitioned_files(by_folder, formats, files))
    else:
        data = list(_files(_format(table.input_format), files))
    orphans = sorted(_orphans(table, keys, by_folder, files))
    missing = sorted(files.missing)
    facts = {
        "format": "hive",
        "file_formats": sorted(set(formats.values()) or {_format(table.input_format)}),
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


def _partition(keys: list[str], partition: HivePartition, files: Listing) -> Partition:
    if len(keys) != len(partition.values):
        raise DamagedError(
            f"a partition has {counted(len(partition.values), 'value')} for {counted(len(keys), 'key')}"
        )
    facts = {
        "directory": _plain(partition.location) not in files.missing,
        "statistics_files": _number(partition.parameters.get("numFiles")),
        "statistics_rows": _number(partition.parameters.get("numRows")),
    }
    return Partition(tuple(zip(keys, partition.values, strict=True)), partition.location, facts)


def _files(kind: str, files: Listing) -> Iterator[DataFile]:
    """Yield the files of a table without partitions."""
    for entry in files.entries.values():
        if not entry.folder:
            yield DataFile(entry.path, entry.bytes, format=kind, modified=entry.modified)


def _partitioned_files(
    partitions: Mapping[str, Partition], formats: Mapping[str, str], files: Listing
) -> Iterator[DataFile]:
    """Yield the files of a table that are in the folder of a partition, with its format."""
    for entry in files.entries.values():
        if entry.folder or (folder := _folder_of(entry.path, partitions)) is None:
            continue
        yield DataFile(
            entry.path,
            entry.bytes,
            partitions[folder].values,
            format=formats[folder],
            modified=entry.modified,
        )


def _folder_of(path: str, folders: Mapping[str, object]) -> str | None:
    """Return the folder of a partition that a file is in; None where it is in none."""
    while path.strip("/"):
        path = posixpath.dirname(path)
        if path in folders:
            return path
    return None


def _orphans(table: Table, keys: list[str], folders: Mapping[str, object], files: Listing) -> Iterator[str]:
    """Yield folders that are named as a partition, and are none."""
    root = _plain(table.location)
    for path, entry in files.entries.items():
        name = path.removeprefix(f"{root}/")
        # Folders keep the letters of a key, the metastore makes them small.
        names = [folder.partition("=")[0].lower() for folder in name.split("/")]
        if entry.folder and path not in folders and _is_below(path, root) and names == keys:
            yield partition_names.name(keys, partition_names.values(name))


def _by_path(entries: Iterator[Entry]) -> dict[str, Entry]:
    return {entry.path: entry for entry in entries}


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/")


def _plain(uri: str) -> str:
    return path_of(uri) or uri


def _format(input_format: str) -> str:
    name = input_format.rpartition(".")[2].lower()
    return next((kind for part, kind in _FORMATS.items() if part in name), name or "unknown")


def _number(text: str | None) -> int | None:
    """Return a statistic of the metastore; None where there is none, or text of a user."""
    return int(text) if text and _STATISTIC.fullmatch(text) else None
