"""What the page shows beyond a status: DataNodes, tables, and the files of HDFS by table. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lakehouse.report.tables import Table
from ops.maybe import Answer
from ops.outcome import Result
from ops.status.model import Status
from plugins.module_utils.lakehouse import datanode_lists
from plugins.module_utils.lakehouse.fsck import File

# Of what is in no table.
NO_FORMAT = "no table"
LIVE, DEAD = "live", "dead"


@dataclass(frozen=True)
class DataNode:
    """A DataNode as the NameNode sees it: bytes, and the seconds since it was heard of.

    `state` is live or dead, or what an administrator made of it: such as `decommissioned`.
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
class Listed:
    """A table of the metastore; `path` is its folder in HDFS, empty where it is elsewhere."""

    name: str
    format: str
    path: str


@dataclass(frozen=True)
class Warehouse:
    """Where fsck is asked for everything, and the DataNodes' names by the addresses in its answer."""

    url: str
    superuser: str
    names: Mapping[str, str]


@dataclass(frozen=True)
class View:
    """A cluster at one moment. `files` counts files and folders."""

    status: Status
    ending: Result
    datanodes: Answer[tuple[DataNode, ...]]
    files: Answer[int]
    tables: Answer[tuple[Listed, ...]]
    warehouse: Warehouse


@dataclass(frozen=True)
class Counted:
    """A table, or a folder that is none's, with its files."""

    table: Table
    path: str
    files: tuple[File, ...]


# What the tables were when the files were asked for.
Count = Answer[tuple[Counted, ...]]


def datanodes(info: Mapping[str, Any]) -> tuple[DataNode, ...]:
    """Read the NameNode's lists of DataNodes; of one that is dead it knows no numbers."""
    live = [_live(name, node) for name, node in datanode_lists.members(info, datanode_lists.LIVE).items()]
    dead = [_dead(name, node) for name, node in datanode_lists.members(info, datanode_lists.DEAD).items()]
    return tuple(sorted([*live, *dead], key=lambda node: node.name))


def names(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the host of each live DataNode by the address at which it gives its blocks."""
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


def listed(text: str) -> tuple[Listed, ...]:
    """Read the tables of the database, an object per line."""
    return tuple(_listed(json.loads(line)) for line in text.strip().split("\n") if line.strip())


def _listed(row: Mapping[str, Any]) -> Listed:
    return Listed(f"{row['database']}.{row['name']}", str(row["format"]), _path(str(row["location"] or "")))


def _path(location: str) -> str:
    """Return a folder in HDFS; empty for a location elsewhere, or for one that is none."""
    try:
        place = urlsplit(location)
    except ValueError:
        return ""
    return place.path.rstrip("/") if place.scheme == "hdfs" else ""


def counted(tables: Iterable[Listed], files: Iterable[File]) -> tuple[Counted, ...]:
    """Return every table with the files below its folder, then every first folder with what is left.

    A file belongs to the innermost table's folder that it is in; two tables may have the same one.
    """
    known = [table for table in tables if table.path]
    folders = {table.path for table in known}
    found: dict[str, list[File]] = {}
    for file in files:
        home = next((folder for folder in _parents(file.path) if folder in folders), None)
        found.setdefault(home or f"/{file.path.split('/')[1]}", []).append(file)
    own = [
        _counted(table.name, table.format, table.path, found.get(table.path, []))
        for table in sorted(known, key=lambda table: table.name)
    ]
    others = [_counted(folder, NO_FORMAT, folder, found[folder]) for folder in sorted(found.keys() - folders)]
    return (*own, *others)


def _parents(path: str) -> Iterator[str]:
    """Give the folders that a file is in, the innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _counted(name: str, form: str, path: str, files: Sequence[File]) -> Counted:
    """Sum up files. What is expected is what the file wants whose block is the furthest from it."""
    holders = [(file.replication, set(block.datanodes)) for file in files for block in file.blocks]
    expected, least = min(
        ((wanted, len(nodes)) for wanted, nodes in holders),
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
    return Counted(table, path, tuple(sorted(files, key=lambda file: file.path)))
