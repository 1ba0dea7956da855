"""A tree of HDFS: every directory and file with what makes it what it is. Standard library only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import IO, Any

from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.webhdfs import WebHdfs, WebHdfsError

_AT_ONCE = 8
_PRIVATE = "700"


@dataclass(frozen=True)
class Entry:
    """A path below the root; empty is the root itself. Times in milliseconds since the epoch."""

    path: str
    directory: bool
    owner: str
    group: str
    permission: str
    length: int = 0
    modified: int = 0
    replication: int = 0
    file_id: int = 0
    acl: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def identity(self) -> tuple[int, int, int]:
        """The same for a file that was not replaced by another one, of the same content."""
        return (self.file_id, *self.content)

    @property
    def content(self) -> tuple[int, int]:
        """The same for two files of one path with the same content: HDFS changes no byte of a file."""
        return self.length, self.modified


def walk(hdfs: WebHdfs, root: str, left_out: tuple[str, ...] = ()) -> dict[str, Entry]:
    """Return the entries below a root by their paths, without the folders `left_out` and what is in them."""
    found = {"": _entry(hdfs, root, "", hdfs.call("GET", "GETFILESTATUS", root)["FileStatus"])}

    def listed(folder: str) -> list[Entry]:
        rows = _rows(hdfs, f"{root}/{folder}".rstrip("/"))
        return [
            _entry(hdfs, root, path, row)
            for row in rows
            if (path := _below(folder, row["pathSuffix"])) not in left_out
        ]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting: set[Future[list[Entry]]] = {pool.submit(listed, "")}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in done:
                for entry in each.result():
                    found[entry.path] = entry
                    if entry.directory:
                        waiting.add(pool.submit(listed, entry.path))
    return found


def _below(folder: str, name: Any) -> str:
    """Return the path of a name that HDFS lists in a folder: it becomes one of this host's disk."""
    return checked_document.relative(f"{folder}/{name}".lstrip("/"), f"hdfs {folder}")


def _rows(hdfs: WebHdfs, folder: str) -> Iterator[Mapping[str, Any]]:
    """Give a folder's entries, a page after the other: some have more than one answer holds."""
    after = ""
    while True:
        said = hdfs.call("GET", "LISTSTATUS_BATCH", folder, **({"startAfter": after} if after else {}))
        listing = said["DirectoryListing"]
        rows = listing["partialListing"]["FileStatuses"]["FileStatus"]
        yield from rows
        if not listing["remainingEntries"]:
            return
        after = rows[-1]["pathSuffix"]


def _entry(hdfs: WebHdfs, root: str, path: str, row: Mapping[str, Any]) -> Entry:
    acl = ()
    if row.get("aclBit"):
        acl = tuple(hdfs.call("GET", "GETACLSTATUS", f"{root}/{path}".rstrip("/"))["AclStatus"]["entries"])
    directory = row["type"] == "DIRECTORY"
    return Entry(
        path=path,
        directory=directory,
        owner=row["owner"],
        group=row["group"],
        permission=row["permission"],
        length=row["length"],
        modified=0 if directory else row["modificationTime"],
        replication=row["replication"],
        file_id=row["fileId"],
        acl=acl,
    )


def entry(hdfs: WebHdfs, path: str, name: str) -> Entry | None:
    """Return what a path in HDFS is, as an entry of that name; None where there is nothing."""
    status = hdfs.status(path)
    return None if status is None else replace(_entry(hdfs, path, "", status), path=name)


def upwards(path: str) -> list[str]:
    """Return a path and the folders above it, the topmost first."""
    words = path.split("/")
    return ["/".join(words[:count]) for count in range(1, len(words) + 1)]


def room(entries: Iterable[Entry]) -> int:
    """Return the bytes that files take in HDFS, with every replica."""
    return sum(entry.length * max(entry.replication, 1) for entry in entries)


class Staging:
    """A folder at the top of HDFS in which files and folders are made that come back below a root.

    The superuser alone may write there. A writer of the folder above could put something else where a
    file was just made, and have the superuser give that away. Each command has a folder of its own.
    """

    def __init__(self, hdfs: WebHdfs, root: str, command: str) -> None:
        self._hdfs = hdfs
        self.path = f"/{root.strip('/').replace('/', '-')}-{command}"

    def open(self) -> None:
        """Make the folder; WebHdfsError where another user has made one of its name."""
        self._hdfs.call("PUT", "MKDIRS", self.path, permission=_PRIVATE)
        status = self._hdfs.status(self.path) or {}
        if (status.get("owner"), status.get("permission")) != (self._hdfs.user, _PRIVATE):
            raise WebHdfsError(f"{self.path} is not {self._hdfs.user}'s alone: remove it")

    def put(self, path: str, stream: IO[bytes], entry: Entry) -> None:
        """Write a file as an entry describes it; it gets its path when all of it is there.

        WebHdfsError where there is something of that path by then.
        """
        put(self._hdfs, path, stream, entry, made=self._made(path))

    def make(self, path: str, entry: Entry) -> None:
        """Make a folder as an entry describes it; WebHdfsError where there is something of that path."""
        made = self._made(path)
        self._hdfs.call("PUT", "MKDIRS", made)
        own(self._hdfs, made, entry)
        rename(self._hdfs, made, path)

    def _made(self, path: str) -> str:
        return f"{self.path}/{hashlib.sha256(path.encode()).hexdigest()}"


def put(hdfs: WebHdfs, path: str, stream: IO[bytes], entry: Entry, *, made: str) -> None:
    """Write a file as an entry describes it, first as `made`, where the superuser alone may write."""
    hdfs.write(made, stream, entry.length, replication=str(entry.replication))
    own(hdfs, made, entry)
    hdfs.call("PUT", "SETTIMES", made, modificationtime=str(entry.modified))
    rename(hdfs, made, path)


def inode(entry: Entry) -> str:
    """Return the path of an entry that stays its own, wherever a user moves it meanwhile."""
    return f"/.reserved/.inodes/{entry.file_id}"


def rename(hdfs: WebHdfs, path: str, to: str) -> None:
    """Give a file or folder another path; WebHdfsError where there is something already."""
    # Without the option HDFS puts it into a folder of that path.
    hdfs.call("PUT", "RENAME", path, destination=to, renameoptions="NONE")


def own(hdfs: WebHdfs, path: str, entry: Entry) -> None:
    """Give a path in HDFS the owner, mode and access control list of an entry."""
    hdfs.call("PUT", "SETOWNER", path, owner=entry.owner, group=entry.group)
    hdfs.call("PUT", "SETPERMISSION", path, permission=entry.permission)
    if entry.acl:
        # The digit of the group is the mask of named entries; HDFS computes a wider one where none is said.
        named = any(not one.startswith("default:") for one in entry.acl)
        classes = ((-3, "user"), (-2, "mask" if named else "group"), (-1, "other"))
        base = [f"{who}::{_bits(entry.permission, place)}" for place, who in classes]
        hdfs.call("PUT", "SETACL", path, aclspec=",".join([*base, *entry.acl]))


def _bits(permission: str, place: int) -> str:
    # HDFS leaves out zeros in front.
    value = int(permission.zfill(3)[place])
    return "".join(letter if value & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
