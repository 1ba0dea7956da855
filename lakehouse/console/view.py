"""The console's model beyond a status: DataNodes, tables, and the files of HDFS by table. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lakehouse.maybe import Answer
from lakehouse.monitoring.plots import Plot
from lakehouse.outcome import Result
from lakehouse.report.tables import Table
from lakehouse.status.model import Status
from plugins.module_utils.lakehouse import datanode_lists
from plugins.module_utils.lakehouse.fsck import File

# The format of a folder outside of all tables.
NO_FORMAT = "no table"
LIVE, DEAD = "live", "dead"


@dataclass(frozen=True)
class DataNode:
    """A DataNode as the NameNode reports it: bytes, and the seconds since its last heartbeat.

    `state` is live or dead, or its administrative state, such as `decommissioned`.
    """

    name: str
    state: str
    capacity: int
    used: int
    remaining: int
    blocks: int
    silent: int
    failed_volumes: int


@dataclass(frozen=True)
class TableEntry:
    """A table of the metastore; `path` is its folder in HDFS, empty where it is elsewhere."""

    name: str
    format: str
    path: str


@dataclass(frozen=True)
class Warehouse:
    """URL and user of fsck, and the DataNodes' names by the addresses in its report."""

    url: str
    superuser: str
    names: Mapping[str, str]


@dataclass(frozen=True)
class View:
    """A cluster at one time. `files` is the number of files and folders."""

    status: Status
    ending: Result
    datanodes: Answer[tuple[DataNode, ...]]
    files: Answer[int]
    tables: Answer[tuple[TableEntry, ...]]
    warehouse: Warehouse


@dataclass(frozen=True)
class TableFiles:
    """A table, or a folder outside of all tables, with its files."""

    table: Table
    path: str
    files: tuple[File, ...]


# The files by the tables that existed when they were counted.
Count = Answer[tuple[TableFiles, ...]]
# One for each panel, in their order.
Plots = tuple[Answer[Plot], ...]


def datanodes(info: Mapping[str, Any]) -> tuple[DataNode, ...]:
    """Parse the NameNode's lists of DataNodes; a dead one has no numbers."""
    live = [_live(name, node) for name, node in datanode_lists.members(info, datanode_lists.LIVE).items()]
    dead = [_dead(name, node) for name, node in datanode_lists.members(info, datanode_lists.DEAD).items()]
    return tuple(sorted([*live, *dead], key=lambda node: node.name))


def names(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the host of each live DataNode by its address for block transfers."""
    return {
        str(node["xferaddr"]): name
        for name, node in datanode_lists.members(info, datanode_lists.LIVE).items()
    }


def _live(name: str, node: Mapping[str, Any]) -> DataNode:
    state = str(node["adminState"]).lower()
    return DataNode(
        name=name,
        state=LIVE if state == "in service" else state,
        capacity=int(node["capacity"]),
        used=int(node["used"]),
        remaining=int(node["remaining"]),
        blocks=int(node["numBlocks"]),
        silent=int(node["lastContact"]),
        failed_volumes=int(node["volfails"]),
    )


def _dead(name: str, node: Mapping[str, Any]) -> DataNode:
    return DataNode(name, DEAD, 0, 0, 0, 0, int(node["lastContact"]), 0)


def parse_tables(text: str) -> tuple[TableEntry, ...]:
    """Parse the tables of the metastore's database, a JSON object per line."""
    return tuple(_table_entry(json.loads(line)) for line in text.strip().split("\n") if line.strip())


def _table_entry(row: Mapping[str, Any]) -> TableEntry:
    return TableEntry(
        f"{row['database']}.{row['name']}", str(row["format"]), _path(str(row["location"] or ""))
    )


def _path(location: str) -> str:
    """Return a folder in HDFS; empty for a location elsewhere, or an invalid one."""
    try:
        place = urlsplit(location)
    except ValueError:
        return ""
    return place.path.rstrip("/") if place.scheme == "hdfs" else ""


def files_by_table(tables: Iterable[TableEntry], files: Iterable[File]) -> tuple[TableFiles, ...]:
    """Return all tables with the files in their folders, then the top-level folders with the other files.

    A file belongs to the innermost folder of a table around it; two tables may share one.
    """
    in_hdfs = [table for table in tables if table.path]
    folders = {table.path for table in in_hdfs}
    files_by_folder: dict[str, list[File]] = {}
    for file in files:
        folder = next((folder for folder in _parents(file.path) if folder in folders), None)
        files_by_folder.setdefault(folder or f"/{file.path.split('/')[1]}", []).append(file)
    table_rows = [
        _table_files(table.name, table.format, table.path, files_by_folder.get(table.path, []))
        for table in sorted(in_hdfs, key=lambda table: table.name)
    ]
    folder_rows = [
        _table_files(folder, NO_FORMAT, folder, files_by_folder[folder])
        for folder in sorted(files_by_folder.keys() - folders)
    ]
    return (*table_rows, *folder_rows)


def _parents(path: str) -> Iterator[str]:
    """Yield the folders around a file, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _table_files(name: str, form: str, path: str, files: Sequence[File]) -> TableFiles:
    """Sum up files. The expected replicas are those of the file that lacks most."""
    holders = [(file.replication, set(block.datanodes)) for file in files for block in file.blocks]
    expected, least = min(
        ((replication, len(nodes)) for replication, nodes in holders),
        key=lambda pair: (pair[1] - pair[0], pair[1]),
        default=(max((file.replication for file in files), default=0),) * 2,
    )
    table = Table(
        name=name,
        format=form,
        files=len(files),
        blocks=len(holders),
        bytes=sum(file.bytes for file in files),
        replicas_expected=expected,
        replicas_min=least,
        nodes=Counter(node for _, nodes in holders for node in nodes),
    )
    return TableFiles(table, path, tuple(sorted(files, key=lambda file: file.path)))
