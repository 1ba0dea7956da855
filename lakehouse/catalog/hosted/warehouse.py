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
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse import checked_document, hdfs_tree
from plugins.module_utils.lakehouse.hdfs_tree import Entry
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError

_AT_ONCE = 8
# What says of a table that its files are there comes last.
_POINTERS = (re.compile(r"\.avro$|(^|/)_delta_log(/|$)"), re.compile(r"\.metadata\.json$"))


@dataclass(frozen=True)
class Lack:
    """What a table lacks of its folders in a snapshot: entries by path below the root, parents first.

    `stranger` is a file of those folders that the snapshot does not have, empty where there is none. `whole`
    are those folders of which nothing is there.
    """

    entries: tuple[Entry, ...] = ()
    stranger: str = ""
    whole: tuple[str, ...] = ()

    @property
    def files(self) -> list[Entry]:
        """The files among the entries."""
        return [one for one in self.entries if not one.directory]

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
        # A person and the clock may be there in the same second.
        if made not in self.snapshots():
            with _hdfs_errors():
                self._hdfs.call("PUT", "CREATESNAPSHOT", self._root, snapshotname=str(made))
        return made

    def forget(self, *, hours: int, days: int) -> None:
        """Remove the snapshots that need not be kept; all with 0 hours and 0 days."""
        for one in snapshots.expired(self.snapshots(), time.time(), hours=hours, days=days):
            with _hdfs_errors():
                self._hdfs.call("DELETE", "DELETESNAPSHOT", self._root, snapshotname=str(one))

    def lack(self, snapshot: str, folders: Sequence[str], *, alone: bool) -> Lack:
        """Return what some folders, by their paths in HDFS, lack of a snapshot; with those above them.

        With `alone` they may hold nothing that the snapshot does not have: their files are the table.
        """
        [known], places = snapshots.known([snapshot]), [self._below(folder) for folder in folders]
        with _hdfs_errors():
            if self._hdfs.status(f"{self._root}/.snapshot/{known}") is None:
                raise LakehouseError(f"the snapshot {known} of {self._root} is gone", "the same command")
        entries, strangers = dict[str, Entry](), list[str]()
        with _hdfs_errors():
            for folder in places:
                source = self._walked(f".snapshot/{known}/{folder}")
                there = self._walked(folder)
                for path, entry in source.items():
                    if path not in there:
                        whole = f"{folder}/{path}".rstrip("/")
                        entries[whole] = replace(entry, path=whole)
                    elif not _alike(entry, there[path]):
                        strangers.append(f"{folder}/{path}")
                if alone:
                    others = (entry for path, entry in there.items() if path not in source)
                    strangers += [f"{folder}/{entry.path}" for entry in others if _is_read(entry)]
                for above in hdfs_tree.upwards(folder)[:-1] if source else ():
                    if above not in entries and self._hdfs.status(f"{self._root}/{above}") is None:
                        path = f"{self._root}/.snapshot/{known}/{above}"
                        if missing := hdfs_tree.entry(self._hdfs, path, above):
                            entries[above] = missing
        ordered = tuple(entries[path] for path in sorted(entries))
        stranger = f"{self._root}/{strangers[0]}" if strangers else ""
        return Lack(ordered, stranger, tuple(place for place in places if place in entries))

    def bring(self, snapshot: str, lack: Lack) -> None:
        """Copy what is lacking out of a snapshot.

        A folder of which nothing is there gets its name when all of it is there: a reader, or the next run of
        this command, would take half of one for the table.
        """
        whole = {place: [entry for entry in lack.entries if _is_in(entry, place)] for place in lack.whole}
        rest = [entry for entry in lack.entries if not any(_is_in(entry, place) for place in lack.whole)]
        with _hdfs_errors():
            self._merge(snapshot, rest, "", "")
            for place in sorted(lack.whole, key=lambda place: max(map(_rank, whole[place]))):
                unfinished = f"{hdfs_tree.half(place)}-{snapshot}"
                copied = self._walked(unfinished)
                # A copy that was killed: a folder may lack its owner, a file has all or another name.
                lacking = [
                    entry
                    for entry in whole[place]
                    if entry.directory
                    or (copy := copied.get(entry.path[len(place) + 1 :])) is None
                    or not _alike(entry, copy)
                ]
                self._merge(snapshot, lacking, place, unfinished)
                hdfs_tree.rename(self._hdfs, f"{self._root}/{unfinished}", f"{self._root}/{place}")

    def _merge(self, snapshot: str, entries: Sequence[Entry], place: str, other: str) -> None:
        """Copy entries out of a snapshot; those of the folder `place` into another one."""
        folders = [entry for entry in entries if entry.directory]
        files = [entry for entry in entries if not entry.directory]

        def target(entry: Entry) -> str:
            return f"{self._root}/{other}{entry.path.removeprefix(place)}"

        def copy(entry: Entry) -> None:
            with self._hdfs.reading(f"{self._root}/.snapshot/{snapshot}/{entry.path}") as stream:
                hdfs_tree.put(self._hdfs, target(entry), stream, entry)

        for folder in folders:
            self._hdfs.call("PUT", "MKDIRS", target(folder))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for rank in range(len(_POINTERS) + 1):
                list(pool.map(copy, [entry for entry in files if _rank(entry) == rank]))
        # Deepest first, for an owner may take away what is needed to reach what is in a folder.
        for folder in reversed(folders):
            hdfs_tree.own(self._hdfs, target(folder), folder)

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
        raise LakehouseError(f"HDFS: {error}", f"{PROGRAM} status") from error
