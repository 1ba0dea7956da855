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
# Before the name of a file or folder of which a part is there: engines read no such name.
_HALF = ".restored-"
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
        return sum(one.length * max(one.replication, 1) for one in self.files)

    def json(self) -> dict[str, Any]:
        """For the machine that asks."""
        return {"files": len(self.files), "bytes": self.bytes, "stranger": self.stranger}


class Warehouse:
    """The folder of HDFS above all tables. A method raises LakehouseError where HDFS refuses or is silent."""

    def __init__(self, hdfs: WebHdfs, root: str) -> None:
        self._hdfs, self._root = hdfs, root

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the history, the oldest first."""
        with _refused(f"{PROGRAM} status"):
            return snapshots.known(self._hdfs.names(f"{self._root}/.snapshot"))

    def make(self, commit: str) -> Snapshot:
        """Make a snapshot for a commit by its id."""
        made = snapshots.of(commit, time.time())
        # A person and the clock may be there in the same second.
        if made not in self.snapshots():
            with _refused(f"{PROGRAM} status"):
                self._hdfs.call("PUT", "CREATESNAPSHOT", self._root, snapshotname=str(made))
        return made

    def forget(self, *, hours: int, days: int) -> None:
        """Remove the snapshots that need not be kept; all with 0 hours and 0 days."""
        for one in snapshots.expired(self.snapshots(), time.time(), hours=hours, days=days):
            with _refused(f"{PROGRAM} status"):
                self._hdfs.call("DELETE", "DELETESNAPSHOT", self._root, snapshotname=str(one))

    def lack(self, snapshot: str, folders: Sequence[str], *, alone: bool) -> Lack:
        """Return what some folders, by their paths in HDFS, lack of a snapshot; with those above them.

        With `alone` they may hold nothing that the snapshot does not have: their files are the table.
        """
        [known], places = snapshots.known([snapshot]), [self._below(folder) for folder in folders]
        with _refused(f"{PROGRAM} status"):
            if self._hdfs.status(f"{self._root}/.snapshot/{known}") is None:
                raise LakehouseError(f"the snapshot {known} of {self._root} is gone", "the same command")
        entries, strangers = dict[str, Entry](), list[str]()
        with _refused(f"{PROGRAM} status"):
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
                    others = (one for path, one in there.items() if path not in source)
                    strangers += [f"{folder}/{one.path}" for one in others if _counts(one)]
                for above in _above(folder) if source else ():
                    if above not in entries and self._hdfs.status(f"{self._root}/{above}") is None:
                        known_as = f"{self._root}/.snapshot/{known}/{above}"
                        if found := hdfs_tree.entry(self._hdfs, known_as, above):
                            entries[above] = found
        ordered = tuple(entries[path] for path in sorted(entries))
        stranger = f"{self._root}/{strangers[0]}" if strangers else ""
        return Lack(ordered, stranger, tuple(place for place in places if place in entries))

    def bring(self, snapshot: str, lack: Lack) -> None:
        """Copy what is lacking out of a snapshot.

        A folder of which nothing is there gets its name when all of it is there: half of one would be taken
        for a table by whoever looks for the folder, the next run of this among them.
        """
        whole = {place: [one for one in lack.entries if _is_in(one, place)] for place in lack.whole}
        rest = [one for one in lack.entries if not any(_is_in(one, place) for place in lack.whole)]
        with _refused(f"{PROGRAM} status"):
            self._merge(snapshot, rest, "", "")
            for place in sorted(lack.whole, key=lambda place: max(map(_rank, whole[place]))):
                folder, _, name = place.rpartition("/")
                half = f"{folder}/{_HALF}{name}-{snapshot}".lstrip("/")
                there = self._walked(half)
                # Of one that was killed: a folder may lack its owner, a file has all or another name.
                lacking = [
                    one
                    for one in whole[place]
                    if one.directory
                    or (found := there.get(one.path[len(place) + 1 :])) is None
                    or not _alike(one, found)
                ]
                self._merge(snapshot, lacking, place, half)
                self._rename(half, place)

    def _merge(self, snapshot: str, entries: Sequence[Entry], place: str, other: str) -> None:
        """Copy entries out of a snapshot; those of the folder `place` into another one."""
        targets = {one.path: f"{other}{one.path.removeprefix(place)}" for one in entries}
        folders = [one for one in entries if one.directory]
        for one in folders:
            self._hdfs.call("PUT", "MKDIRS", f"{self._root}/{targets[one.path]}")
        files = [one for one in entries if not one.directory]
        for rank in range(len(_POINTERS) + 1):
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                some = [one for one in files if _rank(one) == rank]
                list(pool.map(lambda one: self._copy(snapshot, one, targets[one.path]), some))
        # Deepest first, for an owner may take away what is needed to reach what is in a folder.
        for one in reversed(folders):
            hdfs_tree.own(self._hdfs, f"{self._root}/{targets[one.path]}", one)

    def _copy(self, snapshot: str, entry: Entry, target: str) -> None:
        folder, _, name = target.rpartition("/")
        half = f"{folder}/{_HALF}{name}".lstrip("/")
        path = f"{self._root}/{half}"
        with self._hdfs.reading(f"{self._root}/.snapshot/{snapshot}/{entry.path}") as stream:
            self._hdfs.write(path, stream, entry.length, replication=str(entry.replication))
        hdfs_tree.own(self._hdfs, path, entry)
        self._hdfs.call("PUT", "SETTIMES", path, modificationtime=str(entry.modified))
        self._rename(half, target)

    def _rename(self, source: str, target: str) -> None:
        path = f"{self._root}/{target}"
        if not self._hdfs.call("PUT", "RENAME", f"{self._root}/{source}", destination=path)["boolean"]:
            raise WebHdfsError(f"RENAME {path}: HDFS refuses to put it there")

    def room(self) -> int:
        """Return the bytes that HDFS has left, of which each replica takes its own."""
        with _refused(f"{PROGRAM} status"):
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


def _counts(entry: Entry) -> bool:
    """Tell whether an engine reads a file."""
    return not entry.directory and not entry.path.rpartition("/")[2].startswith(".")


def _above(path: str) -> Iterator[str]:
    """Give the folders above a path, the topmost first."""
    words = path.split("/")
    return ("/".join(words[:count]) for count in range(1, len(words)))


@contextmanager
def _refused(following: str) -> Iterator[None]:
    """Raise what HDFS says as a LakehouseError; `following` is what a person looks at then."""
    try:
        yield
    except (WebHdfsError, checked_document.DocumentError) as error:
        raise LakehouseError(f"HDFS: {error}", following) from error
