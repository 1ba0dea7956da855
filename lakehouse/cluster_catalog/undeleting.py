"""Find the files of dropped tables in the HDFS snapshots of commits."""

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
from lakehouse.clients import Files
from lakehouse.cluster_catalog.sync import Node, call
from lakehouse.errors import LakehouseError
from lakehouse.report.text import size

# Returns the document of a table or partition in a commit, by a prefix of its id; None if it has none.
ReadDocument = Callable[[str, Name], Document | None]
Sizes = Callable[[str], Mapping[str, int]]


class Undeleting:
    """Searches the snapshots of a cluster's HDFS for the files of a commit's tables.

    A copy of a table is its own folder only: another location may belong to another table by now.
    """

    def __init__(
        self, node: Node, files: Files, root: str, entry: Entry, read_document: ReadDocument
    ) -> None:
        self._node, self._files, self._root, self._entry = node, files, root, entry
        self._read_document = read_document
        self._sizes = cache(files.sizes)

    def __call__(self, dropped: Mapping[Name, Sequence[Document]]) -> Mapping[Name, Copy | str]:
        """Return the copy of each object's files, or why there is none; LakehouseError if HDFS is full."""
        existing = snapshots.known(self._files.names(f"{self._root}/.snapshot"))
        ordered = snapshots.places(existing, self._entry.id, self._entry.time)
        results: dict[Name, Copy | str] = {
            name: self._search(name, documents, ordered) for name, documents in dropped.items()
        }
        copies = {name: result for name, result in results.items() if isinstance(result, Copy)}
        if copies:
            request = {"tables": [copy.request for copy in copies.values()]}
            response = call(self._node, "lack", request)
            for (name, copy), lack in zip(copies.items(), response["lacks"], strict=True):
                results[name] = _counted(copy, lack)
            possible = [result for result in results.values() if isinstance(result, Copy)]
            _check_free_space(possible, int(response["room"]))
        return results

    def _search(self, name: Name, documents: Sequence[Document], ordered: Sequence[Snapshot]) -> Copy | str:
        """Return a copy whose files are not counted yet, or why there is none."""
        table, *partitions = documents
        folder = shared_files.normal_path(str(table.get("location") or location(table)))
        if not folder.startswith(f"{self._root}/"):
            return f"snapshots are of {self._root}, and {folder} is not in it"
        places = [str(partition["location"]) for partition in partitions if partition.get("location")]
        copies, outside = list[Copy](), list[str]()
        for snapshot in ordered:
            if not self._is_same(snapshot, name, table):
                continue
            view = SnapshotFiles(self._files, self._sizes, self._root, str(snapshot), folder)
            if faults := readable.file_faults(table, view, rows=True):
                outside += [fault.path for fault in faults if not view.has(fault.path)]
            elif table_format(table) != "delta" or not readable.why_unreadable(table, view):
                absent = tuple(readable.folder_faults(places, view))
                exclusive = table_format(table) != "iceberg"
                copies.append(Copy(str(snapshot), folder, exclusive, absent=absent))
                if not absent:
                    break
        if copies:
            return min(copies, key=lambda copy: len(copy.absent))
        if outside:
            return f"only {folder} comes back, and {outside[0]} is not in it"
        return f"no snapshot has it{_oldest(ordered)}"

    def _is_same(self, snapshot: Snapshot, name: Name, table: Document) -> bool:
        """Return whether a snapshot has the files of this table, and not of another one of its name."""
        if table_format(table) == "iceberg" or snapshot.commit == self._entry.id[: len(snapshot.commit)]:
            # Names of Iceberg metadata files are unique.
            return True
        document = self._read_document(snapshot.commit, name)
        return document is not None and _identity(document) == _identity(table)


def _identity(table: Document) -> tuple[Any, ...]:
    """Return the values that tell apart tables or partitions with the same name."""
    return location(table), table.get("location"), table.get(CREATED)


def bring(node: Node, copies: Sequence[Copy]) -> None:
    """Copy files from snapshots; LakehouseError if a snapshot is gone, or HDFS is full."""
    call(node, "bring", {"tables": [copy.request for copy in copies]})


class SnapshotFiles:
    """HDFS as `readable.Files`, in which one folder below the root has the files of a snapshot."""

    def __init__(self, files: Files, sizes: Sizes, root: str, snapshot: str, folder: str) -> None:
        """`sizes` returns the sizes of the files in a folder by name; it is cached, for many files in one."""
        self._files, self._sizes = files, sizes
        self._root, self._snapshot, self._folder = root, snapshot, folder

    def holds(self, uri: str) -> bool:
        """Return whether a URI belongs to HDFS."""
        return self._files.holds(uri)

    def size(self, uri: str) -> int | None:
        """Return the size of a file, 0 for a folder; None if there is neither."""
        folder, _, name = self.place(uri).rpartition("/")
        return self._sizes(folder).get(name)

    def exists(self, uri: str) -> bool:
        """Return whether there is such a file or folder."""
        return self.size(uri) is not None

    def read(self, uri: str) -> bytes:
        """Return the content of a file."""
        return self._files.read(self.place(uri))

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder."""
        return list(self._sizes(self.place(uri)))

    def has(self, uri: str) -> bool:
        """Return whether a URI is in the folder."""
        path = shared_files.normal_path(uri)
        return path == self._folder or path.startswith(f"{self._folder}/")

    def place(self, uri: str) -> str:
        """Return the path at which a URI is read: in the snapshot for the folder."""
        path = shared_files.normal_path(uri)
        relative = path.removeprefix(f"{self._root}/")
        return f"{self._root}/.snapshot/{self._snapshot}/{relative}" if self.has(path) else path


def _oldest(existing: Sequence[Snapshot]) -> str:
    if not existing:
        return "; there is none (catalog_snapshots_enabled)"
    moment = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(min(existing).time))
    return f"; the oldest is of {moment}"


def _counted(copy: Copy, lack: Mapping[str, Any]) -> Copy | str:
    if lack["stranger"]:
        return f"{lack['stranger']} is not in {copy.snapshot}: move it away first"
    return replace(copy, files=int(lack["files"]), bytes=int(lack["bytes"]))


def _check_free_space(copies: Sequence[Copy], room: int) -> None:
    """Raise LakehouseError if the copies need more than the free space of HDFS."""
    needed = sum(copy.bytes for copy in copies)
    if needed > room:
        raise LakehouseError(
            f"the files that come back take {size(needed)} with their replicas,"
            f" and HDFS has {size(room)} left",
            "hdfs dfsadmin -report",
        )
