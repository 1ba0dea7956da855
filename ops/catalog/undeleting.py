"""Finds the files of dropped tables in the snapshots of HDFS that belong to commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from lakehouse.catalog import readable, shared_files, snapshots
from lakehouse.catalog.diff import CREATED
from lakehouse.catalog.documents import Document, location, table_format
from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Copy
from lakehouse.catalog.snapshots import Snapshot
from lakehouse.catalog.store import Entry
from lakehouse.errors import LakehouseError
from lakehouse.report.text import size
from ops.catalog.sync import Node, told
from ops.clients import Files

# Returns what a commit, by the beginning of its id, says of a table or partition; None where it has none.
Said = Callable[[str, Name], Document | None]
Listed = Callable[[str], Mapping[str, int]]


class Undeleting:
    """Looks for the files of a commit's tables in the snapshots of a cluster's HDFS.

    What comes back of a table is its own folder: another place may be another table's by now.
    """

    def __init__(self, node: Node, files: Files, root: str, entry: Entry, said: Said) -> None:
        self._node, self._files, self._root, self._entry, self._said = node, files, root, entry, said
        self._listed = cache(files.sizes)

    def __call__(self, dropped: Mapping[Name, Sequence[Document]]) -> Mapping[Name, Copy | str]:
        """Return where the files of each come from, or why from nowhere; LakehouseError: HDFS has no room."""
        every = snapshots.known(self._files.names(f"{self._root}/.snapshot"))
        order = snapshots.places(every, self._entry.id, self._entry.time)
        found: dict[Name, Copy | str] = {
            name: self._found(name, documents, order) for name, documents in dropped.items()
        }
        asked = {name: one for name, one in found.items() if isinstance(one, Copy)}
        if asked:
            said = told(self._node, "lack", {"tables": [one.asked for one in asked.values()]})
            for (name, copy), lack in zip(asked.items(), said["lacks"], strict=True):
                found[name] = _counted(copy, lack)
            _want_room([one for one in found.values() if isinstance(one, Copy)], int(said["room"]))
        return found

    def _found(self, name: Name, documents: Sequence[Document], order: Sequence[Snapshot]) -> Copy | str:
        """Return a copy whose files are not counted yet, or why there is none."""
        table, *partitions = documents
        folder = shared_files.normal_path(str(table.get("location") or location(table)))
        if not folder.startswith(f"{self._root}/"):
            return f"snapshots are of {self._root}, and {folder} is not in it"
        places = [str(one["location"]) for one in partitions if one.get("location")]
        copies, outside = list[Copy](), list[str]()
        for one in order:
            if not self._is_same(one, name, table):
                continue
            view = SnapshotFiles(self._files, self._listed, self._root, str(one), folder)
            if faults := readable.file_faults(table, view, rows=True):
                outside += [fault.path for fault in faults if not view.has(fault.path)]
            elif table_format(table) != "delta" or not readable.lost(table, view):
                absent = tuple(readable.folder_faults(places, view))
                copies.append(Copy(str(one), folder, table_format(table) != "iceberg", absent=absent))
                if not absent:
                    break
        if copies:
            return min(copies, key=lambda copy: len(copy.absent))
        if outside:
            return f"only {folder} comes back, and {outside[0]} is not in it"
        return f"no snapshot has it{_oldest(order)}"

    def _is_same(self, snapshot: Snapshot, name: Name, table: Document) -> bool:
        """Tell whether a snapshot has the files of this table, and not of another one of its name."""
        if table_format(table) == "iceberg" or snapshot.commit == self._entry.id[: len(snapshot.commit)]:
            # No two metadata files of Iceberg have the same name.
            return True
        other = self._said(snapshot.commit, name)
        return other is not None and _identity(other) == _identity(table)


def _identity(table: Document) -> tuple[Any, ...]:
    """Return what no two tables of a name have in common, nor two partitions."""
    return location(table), table.get("location"), table.get(CREATED)


def bring(node: Node, copies: Sequence[Copy]) -> None:
    """Copy files out of snapshots; LakehouseError where one of these is gone, or HDFS has no room."""
    told(node, "bring", {"tables": [one.asked for one in copies]})


class SnapshotFiles:
    """The files of HDFS as `readable.Files`: those of a folder below the root as a snapshot has them."""

    def __init__(self, files: Files, listed: Listed, root: str, snapshot: str, folder: str) -> None:
        """`listed` returns the sizes of what is in a folder by name: many files are in one."""
        self._files, self._listed = files, listed
        self._root, self._snapshot, self._folder = root, snapshot, folder

    def holds(self, uri: str) -> bool:
        """Tell whether a URI belongs to HDFS."""
        return self._files.holds(uri)

    def size(self, uri: str) -> int | None:
        """Return the bytes of a file, 0 for a folder; None where there is neither."""
        folder, _, name = self.place(uri).rpartition("/")
        return self._listed(folder).get(name)

    def exists(self, uri: str) -> bool:
        """Tell whether there is such a file or folder."""
        return self.size(uri) is not None

    def read(self, uri: str) -> bytes:
        """Return what is in a file."""
        return self._files.read(self.place(uri))

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder."""
        return list(self._listed(self.place(uri)))

    def has(self, uri: str) -> bool:
        """Tell whether a URI is of the folder."""
        path = shared_files.normal_path(uri)
        return path == self._folder or path.startswith(f"{self._folder}/")

    def place(self, uri: str) -> str:
        """Return the path of what a URI was in the snapshot."""
        path = shared_files.normal_path(uri)
        below = path.removeprefix(f"{self._root}/")
        return f"{self._root}/.snapshot/{self._snapshot}/{below}" if self.has(path) else path


def _oldest(every: Sequence[Snapshot]) -> str:
    if not every:
        return "; there is none (catalog_snapshots_enabled)"
    moment = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(min(every).time))
    return f"; the oldest is of {moment}"


def _counted(copy: Copy, lack: Mapping[str, Any]) -> Copy | str:
    if lack["stranger"]:
        return f"{lack['stranger']} is not in {copy.snapshot}: move it away first"
    return replace(copy, files=int(lack["files"]), bytes=int(lack["bytes"]))


def _want_room(copies: Sequence[Copy], room: int) -> None:
    wanted = sum(one.bytes for one in copies)
    if wanted > room:
        raise LakehouseError(
            f"the files that come back take {size(wanted)} with their replicas,"
            f" and HDFS has {size(room)} left",
            "hdfs dfsadmin -report",
        )
