"""The warehouse in HDFS: its snapshots, and files that come back out of them.

HDFS refuses to delete a folder of which there are snapshots, so they are made of the folder above all tables.
"""

from __future__ import annotations

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
# Before the name of a file that is being written: engines read no such name.
_HALF = ".restored-"


@dataclass(frozen=True)
class Lack:
    """What a table lacks of its folders in a snapshot: entries by path below the root, parents first.

    `stranger` is a file of those folders that the snapshot does not have, empty where there is none.
    """

    entries: tuple[Entry, ...] = ()
    stranger: str = ""

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

    def keep(self, commit: str, *, hours: int, days: int) -> Snapshot | None:
        """Make a snapshot for a commit by its id, and remove those that need not be kept.

        With 0 hours and 0 days none is made, and all are removed.
        """
        every, made = self.snapshots(), snapshots.of(commit, time.time()) if hours or days else None
        with _refused("playbooks/site.yml --tags hdfs"):
            # A person and the clock may be there in the same second.
            if made and made not in every:
                self._hdfs.call("PUT", "CREATESNAPSHOT", self._root, snapshotname=str(made))
                every.append(made)
            for one in snapshots.expired(every, time.time(), hours=hours, days=days):
                self._hdfs.call("DELETE", "DELETESNAPSHOT", self._root, snapshotname=str(one))
        return made

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
        return Lack(ordered, f"{self._root}/{strangers[0]}" if strangers else "")

    def bring(self, snapshot: str, lack: Lack) -> None:
        """Copy what is lacking out of a snapshot; a file gets its name when all of it is there."""
        with _refused(f"{PROGRAM} status"):
            for one in lack.entries:
                if one.directory:
                    self._hdfs.call("PUT", "MKDIRS", self._path(one))
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(lambda one: self._copy(snapshot, one), lack.files))
            # Deepest first: what a folder may be listed by is the last thing that changes.
            for one in reversed(lack.entries):
                if one.directory:
                    hdfs_tree.own(self._hdfs, self._path(one), one)

    def _copy(self, snapshot: str, entry: Entry) -> None:
        folder, _, name = self._path(entry).rpartition("/")
        half = f"{folder}/{_HALF}{name}"
        with self._hdfs.reading(f"{self._root}/.snapshot/{snapshot}/{entry.path}") as stream:
            self._hdfs.write(half, stream, entry.length, replication=str(entry.replication))
        hdfs_tree.own(self._hdfs, half, entry)
        self._hdfs.call("PUT", "SETTIMES", half, modificationtime=str(entry.modified))
        if not self._hdfs.call("PUT", "RENAME", half, destination=self._path(entry))["boolean"]:
            raise WebHdfsError(f"RENAME {self._path(entry)}: HDFS refuses to put a file there")

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

    def _path(self, entry: Entry) -> str:
        return f"{self._root}/{entry.path}"


def _alike(one: Entry, other: Entry) -> bool:
    """Tell whether a path has the content of a snapshot."""
    return one.directory == other.directory and (one.directory or one.content == other.content)


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
