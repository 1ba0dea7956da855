"""The warehouse in HDFS: its snapshots, and copies of files from them.

HDFS refuses to delete a folder with snapshots, so they are created of the folder above all tables.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.catalog import snapshots
from lakehouse.catalog.snapshots import Snapshot
from lakehouse.catalog.store import Entry as Commit
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse import checked_document, hdfs_tree
from plugins.module_utils.lakehouse.hdfs_tree import Entry, Staging
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError

_AT_ONCE = 8
# Files that refer to others are copied after these, in this order.
_POINTERS = (re.compile(r"\.avro$|(^|/)_delta_log(/|$)"), re.compile(r"\.metadata\.json$"))


@dataclass(frozen=True)
class Lack:
    """What a table's folder, and those above it, lack of a snapshot, by path below the root.

    `stranger` is a file of the folder that the snapshot does not have, empty without any.
    """

    entries: tuple[Entry, ...] = ()
    stranger: str = ""

    @property
    def files(self) -> list[Entry]:
        """The files among the entries."""
        return [entry for entry in self.entries if not entry.directory]

    @property
    def whole(self) -> list[str]:
        """The paths of the topmost missing folders."""
        missing = {entry.path for entry in self.entries if entry.directory}
        return sorted(path for path in missing if path.rpartition("/")[0] not in missing)

    @property
    def bytes(self) -> int:
        """The size of the files with all replicas."""
        return hdfs_tree.room(self.files)

    def json(self) -> dict[str, Any]:
        """Return the numbers for the response."""
        return {"files": len(self.files), "bytes": self.bytes, "stranger": self.stranger}


class Warehouse:
    """The folder of HDFS above all tables. Methods raise LakehouseError for an error or a timeout of HDFS."""

    def __init__(self, hdfs: WebHdfs, root: str) -> None:
        self._hdfs, self._root = hdfs, root

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the history, the oldest first."""
        with _hdfs_errors():
            return snapshots.known(self._hdfs.names(f"{self._root}/.snapshot"))

    def make(self, commit: str) -> Snapshot:
        """Create a snapshot for the commit with this id."""
        snapshot = snapshots.of(commit, time.time())
        try:
            self._hdfs.call("PUT", "CREATESNAPSHOT", self._root, snapshotname=str(snapshot))
        except WebHdfsError as error:
            # A user and the timer may commit in the same second.
            if snapshot not in self.snapshots():
                raise _error(error) from error
        return snapshot

    def forget(self, *, hours: int, days: int, served: Commit | None = None) -> None:
        """Remove expired snapshots; all with 0 hours and 0 days.

        Otherwise the first snapshot in which the files of the served commit are searched stays.
        """
        existing = self.snapshots()
        retained = (
            snapshots.places(existing, served.id, served.time)[:1] if served and (hours or days) else []
        )
        for snapshot in snapshots.expired(existing, time.time(), hours=hours, days=days):
            if snapshot in retained:
                continue
            with _hdfs_errors():
                self._hdfs.call("DELETE", "DELETESNAPSHOT", self._root, snapshotname=str(snapshot))

    def lack(self, snapshot: str, folder: str, *, alone: bool) -> Lack:
        """Return what a folder, by its path in HDFS, and the folders above it lack of a snapshot.

        With `alone` the table consists of the folder's files, so it may have no others than the snapshot.
        """
        [name], place = snapshots.known([snapshot]), self._below(folder)
        source, strangers = f"{self._root}/.snapshot/{name}", list[str]()
        with _hdfs_errors():
            if self._hdfs.status(source) is None:
                raise LakehouseError(f"the snapshot {name} of {self._root} is gone", "the same command")
            originals, live = self._walk(f".snapshot/{name}/{place}"), self._walk(place)
            entries = [
                replace(entry, path=f"{place}/{path}".rstrip("/"))
                for path, entry in originals.items()
                if path not in live
            ]
            strangers += [
                path for path in originals if path in live and not _is_same(originals[path], live[path])
            ]
            if alone:
                strangers += [path for path in live if path not in originals and _is_read(live[path])]
            entries += [
                missing
                for path in (hdfs_tree.upwards(place)[:-1] if entries and not live else ())
                if self._hdfs.status(f"{self._root}/{path}") is None
                and (missing := hdfs_tree.entry(self._hdfs, f"{source}/{path}", path))
            ]
        stranger = f"{folder}/{min(strangers)}" if strangers else ""
        return Lack(tuple(sorted(entries, key=lambda entry: entry.path)), stranger)

    def bring(self, snapshot: str, lack: Lack) -> None:
        """Copy missing files and folders from a snapshot, data before the files that refer to it.

        Each file and each missing folder is copied into a staging folder that no other user reads or writes,
        and renamed when it is complete: readers, and the next run of this command, must not see a part of it.
        LakehouseError if its path is in use by then.
        """
        folders = {path: [entry for entry in lack.entries if _is_in(entry, path)] for path in lack.whole}
        single = [entry for entry in lack.files if not any(_is_in(entry, path) for path in folders)]
        staging = Staging(self._hdfs, self._root, "undo")
        with _hdfs_errors():
            staging.open()
            place = self._staging_folder(staging, snapshot)
            # The copies of an interrupted run.
            copied = {} if self._hdfs.status(place) is None else hdfs_tree.walk(self._hdfs, place)

            def publish(path: str) -> None:
                hdfs_tree.rename(self._hdfs, f"{place}/{path}", f"{self._root}/{path}")

            for rank in range(len(_POINTERS) + 1):
                files = [entry for entry in single if _rank(entry) == rank]
                self._copy(snapshot, files, staging, place, copied)
                with ThreadPoolExecutor(_AT_ONCE) as pool:
                    list(pool.map(publish, [entry.path for entry in files]))
                for path, entries in folders.items():
                    if max(map(_rank, entries)) == rank:
                        self._copy(snapshot, entries, staging, place, copied)
                        publish(path)
            self._hdfs.call("DELETE", "DELETE", staging.path, recursive="true")

    def _staging_folder(self, staging: Staging, snapshot: str) -> str:
        """Return the folder for copies from a snapshot; remove those of other snapshots."""
        for name in self._hdfs.names(staging.path):
            if name != snapshot:
                self._hdfs.call("DELETE", "DELETE", f"{staging.path}/{name}", recursive="true")
        return f"{staging.path}/{snapshot}"

    def _copy(
        self,
        snapshot: str,
        entries: Sequence[Entry],
        staging: Staging,
        place: str,
        copied: Mapping[str, Entry],
    ) -> None:
        """Copy entries from a snapshot to a place, except for files that were copied already."""
        folders = [entry for entry in entries if entry.directory]
        files = [
            entry
            for entry in entries
            if not entry.directory
            and ((existing := copied.get(entry.path)) is None or not _is_same(entry, existing))
        ]

        def copy(entry: Entry) -> None:
            with self._hdfs.reading(f"{self._root}/.snapshot/{snapshot}/{entry.path}") as stream:
                staging.put(f"{place}/{entry.path}", stream, entry)

        paths = [folder.path for folder in folders]
        parents = {entry.path.rpartition("/")[0] for entry in files}
        for path in (*paths, *parents.difference(paths)):
            self._hdfs.call("PUT", "MKDIRS", f"{place}/{path}".rstrip("/"))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(copy, files))
        for folder in folders:
            hdfs_tree.own(self._hdfs, f"{place}/{folder.path}", folder)

    def room(self) -> int:
        """Return the free bytes of HDFS, of which each replica takes its own."""
        with _hdfs_errors():
            return int(self._hdfs.call("GET", "GETSTATUS", self._root)["FsStatus"]["remaining"])

    def _walk(self, path: str) -> Mapping[str, Entry]:
        absolute = f"{self._root}/{path}"
        return {} if self._hdfs.status(absolute) is None else hdfs_tree.walk(self._hdfs, absolute)

    def _below(self, path: str) -> str:
        """Return a path relative to the root; LakehouseError for one outside of it."""
        if not path.startswith(f"{self._root}/"):
            raise LakehouseError(f"{path} is not below {self._root}, of which there are snapshots")
        return checked_document.relative(path.removeprefix(f"{self._root}/"), path)


def _is_same(original: Entry, copy: Entry) -> bool:
    """Return whether an entry has the content of that in a snapshot."""
    return original.directory == copy.directory and (original.directory or original.content == copy.content)


def _is_in(entry: Entry, place: str) -> bool:
    return entry.path == place or entry.path.startswith(f"{place}/")


def _rank(entry: Entry) -> int:
    """Return the rank in the order of copies: data before the files that refer to it."""
    return max((rank for rank, pattern in enumerate(_POINTERS, 1) if pattern.search(entry.path)), default=0)


def _is_read(entry: Entry) -> bool:
    """Return whether an engine reads a file."""
    return not entry.directory and not entry.path.rpartition("/")[2].startswith(".")


@contextmanager
def _hdfs_errors() -> Iterator[None]:
    """Raise an error of HDFS as a LakehouseError."""
    try:
        yield
    except (WebHdfsError, checked_document.DocumentError) as error:
        raise _error(error) from error


def _error(error: Exception) -> LakehouseError:
    return LakehouseError(f"HDFS: {error}", f"{PROGRAM} status")
