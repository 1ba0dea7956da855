"""The warehouse in HDFS: its snapshots, and files that come back out of them.

HDFS refuses to delete a folder of which there are snapshots, so they are made of the folder above all tables.
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
# What says of a table that its files are there comes last.
_POINTERS = (re.compile(r"\.avro$|(^|/)_delta_log(/|$)"), re.compile(r"\.metadata\.json$"))


@dataclass(frozen=True)
class Lack:
    """What a table lacks of its folder in a snapshot, and of those above: by path below the root.

    `stranger` is a file of the folder that the snapshot does not have, empty where there is none.
    """

    entries: tuple[Entry, ...] = ()
    stranger: str = ""

    @property
    def files(self) -> list[Entry]:
        """The files among the entries."""
        return [one for one in self.entries if not one.directory]

    @property
    def whole(self) -> list[str]:
        """The paths of the topmost folders among the entries: of these nothing is there."""
        missing = {one.path for one in self.entries if one.directory}
        return sorted(path for path in missing if path.rpartition("/")[0] not in missing)

    @property
    def bytes(self) -> int:
        """What the files take, with each replica."""
        return hdfs_tree.room(self.files)

    def json(self) -> dict[str, Any]:
        """For the machine that asks."""
        return {"files": len(self.files), "bytes": self.bytes, "stranger": self.stranger}


class Warehouse:
    """The folder of HDFS above all tables. A method raises LakehouseError where HDFS refuses or is silent."""

    def __init__(self, hdfs: WebHdfs, root: str) -> None:
        self._hdfs, self._root = hdfs, root

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the history, the oldest first."""
        with _hdfs_errors():
            return snapshots.known(self._hdfs.names(f"{self._root}/.snapshot"))

    def make(self, commit: str) -> Snapshot:
        """Make a snapshot for a commit by its id."""
        made = snapshots.of(commit, time.time())
        try:
            self._hdfs.call("PUT", "CREATESNAPSHOT", self._root, snapshotname=str(made))
        except WebHdfsError as error:
            # A person and the clock may be there in the same second.
            if made not in self.snapshots():
                raise _error(error) from error
        return made

    def forget(self, *, hours: int, days: int, served: Commit | None = None) -> None:
        """Remove the snapshots that need not be kept; all with 0 hours and 0 days.

        Otherwise the one stays out of which the files of a served commit are read first.
        """
        every = self.snapshots()
        kept = snapshots.places(every, served.id, served.time)[:1] if served and (hours or days) else []
        for one in snapshots.expired(every, time.time(), hours=hours, days=days):
            if one in kept:
                continue
            with _hdfs_errors():
                self._hdfs.call("DELETE", "DELETESNAPSHOT", self._root, snapshotname=str(one))

    def lack(self, snapshot: str, folder: str, *, alone: bool) -> Lack:
        """Return what a folder, by its path in HDFS, lacks of a snapshot; with those above it.

        With `alone` it may hold nothing that the snapshot does not have: its files are the table.
        """
        [known], place = snapshots.known([snapshot]), self._below(folder)
        source, strangers = f"{self._root}/.snapshot/{known}", list[str]()
        with _hdfs_errors():
            if self._hdfs.status(source) is None:
                raise LakehouseError(f"the snapshot {known} of {self._root} is gone", "the same command")
            kept, there = self._walked(f".snapshot/{known}/{place}"), self._walked(place)
            entries = [
                replace(entry, path=f"{place}/{path}".rstrip("/"))
                for path, entry in kept.items()
                if path not in there
            ]
            strangers += [path for path in kept if path in there and not _alike(kept[path], there[path])]
            if alone:
                strangers += [path for path in there if path not in kept and _is_read(there[path])]
            entries += [
                missing
                for path in (hdfs_tree.upwards(place)[:-1] if entries and not there else ())
                if self._hdfs.status(f"{self._root}/{path}") is None
                and (missing := hdfs_tree.entry(self._hdfs, f"{source}/{path}", path))
            ]
        stranger = f"{folder}/{min(strangers)}" if strangers else ""
        return Lack(tuple(sorted(entries, key=lambda one: one.path)), stranger)

    def bring(self, snapshot: str, lack: Lack) -> None:
        """Copy what is lacking out of a snapshot, data before what names it.

        Each file, and each folder of which nothing is there, is copied into a folder that no other user reads
        or writes, and gets its place when all of it is there: a reader, or the next run of this command,
        would take half of one for the table. LakehouseError where something else has got the place meanwhile.
        """
        whole = {path: [one for one in lack.entries if _is_in(one, path)] for path in lack.whole}
        single = [one for one in lack.files if not any(_is_in(one, path) for path in whole)]
        staging = Staging(self._hdfs, self._root, "undo")
        with _hdfs_errors():
            staging.open()
            place = self._emptied(staging, snapshot)
            # Of a copy that was killed.
            copied = {} if self._hdfs.status(place) is None else hdfs_tree.walk(self._hdfs, place)

            def ready(path: str) -> None:
                hdfs_tree.rename(self._hdfs, f"{place}/{path}", f"{self._root}/{path}")

            for rank in range(len(_POINTERS) + 1):
                files = [one for one in single if _rank(one) == rank]
                self._copy(snapshot, files, staging, place, copied)
                with ThreadPoolExecutor(_AT_ONCE) as pool:
                    list(pool.map(ready, [one.path for one in files]))
                for path, entries in whole.items():
                    if max(map(_rank, entries)) == rank:
                        self._copy(snapshot, entries, staging, place, copied)
                        ready(path)
            self._hdfs.call("DELETE", "DELETE", staging.path, recursive="true")

    def _emptied(self, staging: Staging, snapshot: str) -> str:
        """Return where files of a snapshot are copied to, without what is left of copies out of others."""
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
        """Copy entries out of a snapshot to a place, but for files that are there."""
        folders = [entry for entry in entries if entry.directory]
        files = [
            entry
            for entry in entries
            if not entry.directory and ((done := copied.get(entry.path)) is None or not _alike(entry, done))
        ]

        def copy(entry: Entry) -> None:
            with self._hdfs.reading(f"{self._root}/.snapshot/{snapshot}/{entry.path}") as stream:
                staging.put(f"{place}/{entry.path}", stream, entry)

        made = [folder.path for folder in folders]
        above = {entry.path.rpartition("/")[0] for entry in files}
        for path in (*made, *above.difference(made)):
            self._hdfs.call("PUT", "MKDIRS", f"{place}/{path}".rstrip("/"))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(copy, files))
        for folder in folders:
            hdfs_tree.own(self._hdfs, f"{place}/{folder.path}", folder)

    def room(self) -> int:
        """Return the bytes that HDFS has left, of which each replica takes its own."""
        with _hdfs_errors():
            return int(self._hdfs.call("GET", "GETSTATUS", self._root)["FsStatus"]["remaining"])

    def _walked(self, path: str) -> Mapping[str, Entry]:
        whole = f"{self._root}/{path}"
        return {} if self._hdfs.status(whole) is None else hdfs_tree.walk(self._hdfs, whole)

    def _below(self, path: str) -> str:
        """Return a path below the root; LakehouseError for one that is elsewhere."""
        if not path.startswith(f"{self._root}/"):
            raise LakehouseError(f"{path} is not below {self._root}, of which there are snapshots")
        return checked_document.relative(path.removeprefix(f"{self._root}/"), path)


def _alike(one: Entry, other: Entry) -> bool:
    """Tell whether a path has the content of a snapshot."""
    return one.directory == other.directory and (one.directory or one.content == other.content)


def _is_in(entry: Entry, place: str) -> bool:
    return entry.path == place or entry.path.startswith(f"{place}/")


def _rank(entry: Entry) -> int:
    """Return when an entry is copied: data before what names it."""
    return max((rank for rank, one in enumerate(_POINTERS, 1) if one.search(entry.path)), default=0)


def _is_read(entry: Entry) -> bool:
    """Tell whether an engine reads a file."""
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
