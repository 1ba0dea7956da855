"""Finds the files of dropped tables in the snapshots of HDFS that belong to commits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from lakehouse.catalog import readable, shared_files, snapshots
from lakehouse.catalog.documents import Document, table_format
from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Copy
from lakehouse.catalog.snapshots import Snapshot
from lakehouse.catalog.store import Entry
from lakehouse.errors import LakehouseError
from lakehouse.report.text import size
from ops.catalog.shared import Node, told
from ops.clients import Files

# Of an Iceberg table whose files are not all below its own folder.
_PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


class Undeleting:
    """Looks for the files of a commit's tables in the snapshots of a cluster's HDFS."""

    def __init__(self, node: Node, files: Files, root: str, entry: Entry) -> None:
        self._node, self._files, self._root, self._entry = node, files, root, entry

    def __call__(self, dropped: Mapping[Name, Sequence[Document]]) -> Mapping[Name, Copy | str]:
        """Return where the files of each come from, or why from nowhere; LakehouseError: HDFS has no room."""
        every = snapshots.known(self._files.names(f"{self._root}/.snapshot"))
        order = snapshots.places(every, self._entry.id, self._entry.time)
        views = {one: SnapshotFiles(self._files, self._root, str(one)) for one in order}
        found: dict[Name, Copy | str] = {}
        asked: dict[Name, dict[str, Any]] = {}
        for name, documents in dropped.items():
            places = _tops(place for one in documents for place in _folders(one))
            if outside := [one for one in places if not one.startswith(f"{self._root}/")]:
                found[name] = f"snapshots are of {self._root}, and {outside[0]} is not in it"
                continue
            one = next((one for one in order if _has(views[one], documents)), None)
            if one is None:
                found[name] = f"no snapshot has it{_oldest(every)}"
                continue
            alone = table_format(documents[0]) != "iceberg"
            asked[name] = {"snapshot": str(one), "folders": places, "alone": alone}
        if asked:
            said = told(self._node, "lack", {"tables": list(asked.values())})
            for (name, question), lack in zip(asked.items(), said["lacks"], strict=True):
                found[name] = _judged(question, lack)
            _want_room([one for one in found.values() if isinstance(one, Copy)], int(said["room"]))
        return found

    def bring(self, copy: Copy) -> None:
        """Copy files out of a snapshot; LakehouseError where that is gone, or HDFS has no room."""
        table = {"snapshot": copy.snapshot, "folders": copy.folders, "alone": copy.alone}
        told(self._node, "bring", {"table": table})


class SnapshotFiles:
    """The files of HDFS as `readable.Files`: below the root as a snapshot has them."""

    def __init__(self, files: Files, root: str, snapshot: str) -> None:
        self._files, self._root, self._snapshot = files, root, snapshot
        # Many files are in one folder.
        self._listed = cache(files.sizes)

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

    def place(self, uri: str) -> str:
        """Return the path of what a URI was in the snapshot."""
        path = shared_files.path(uri)
        below = path.removeprefix(f"{self._root}/")
        return path if below == path else f"{self._root}/.snapshot/{self._snapshot}/{below}"


def _folders(document: Document) -> Iterator[str]:
    """Give the folders in which the files of a table or a partition are."""
    parameters = document.get("parameters") or {}
    if table_format(document) == "iceberg":
        pointer = shared_files.path(str(parameters["metadata_location"]))
        yield pointer.rpartition("/")[0]
        yield from (shared_files.path(str(parameters[key])) for key in _PLACES if parameters.get(key))
        yield from shared_files.folders(document)[1:]
    else:
        yield from shared_files.folders(document)


def _tops(places: Iterator[str]) -> list[str]:
    """Return folders without those that are in another one."""
    found: list[str] = []
    for place in sorted(set(places)):
        if not (found and place.startswith(f"{found[-1]}/")):
            found.append(place)
    return found


def _has(view: SnapshotFiles, documents: Sequence[Document]) -> bool:
    return not any(readable.file_faults(one, view, rows=True) for one in documents)


def _oldest(every: Sequence[Snapshot]) -> str:
    if not every:
        return "; there is none (catalog_snapshots_enabled)"
    moment = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(every[0].time))
    return f"; the oldest is of {moment}"


def _judged(question: Mapping[str, Any], lack: Mapping[str, Any]) -> Copy | str:
    if lack["stranger"]:
        return f"{lack['stranger']} is not in {question['snapshot']}: move it away first"
    return Copy(
        snapshot=question["snapshot"],
        folders=tuple(question["folders"]),
        alone=question["alone"],
        files=int(lack["files"]),
        bytes=int(lack["bytes"]),
    )


def _want_room(copies: Sequence[Copy], room: int) -> None:
    wanted = sum(one.bytes for one in copies)
    if wanted > room:
        raise LakehouseError(
            f"the files that come back take {size(wanted)} with their replicas,"
            f" and HDFS has {size(room)} left",
            "hdfs dfsadmin -report",
        )
