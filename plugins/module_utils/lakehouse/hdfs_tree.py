"""A tree of HDFS: every directory and file with its attributes. Standard library only."""

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
    """Return the entries below a root by their paths, without the folders `left_out` and their contents."""
    entries = {"": _entry(hdfs, root, "", hdfs.call("GET", "GETFILESTATUS", root)["FileStatus"])}

    def list_folder(folder: str) -> list[Entry]:
        rows = _rows(hdfs, f"{root}/{folder}".rstrip("/"))
        return [
            _entry(hdfs, root, path, row)
            for row in rows
            if (path := _below(folder, row["pathSuffix"])) not in left_out
        ]

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        pending: set[Future[list[Entry]]] = {pool.submit(list_folder, "")}
        while pending:
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in finished:
                for entry in future.result():
                    entries[entry.path] = entry
                    if entry.directory:
                        pending.add(pool.submit(list_folder, entry.path))
    return entries


def _below(folder: str, name: Any) -> str:
    """Return the path of a name that HDFS lists in a folder: it becomes one of this host's disk."""
    return checked_document.relative(f"{folder}/{name}".lstrip("/"), f"hdfs {folder}")


def _rows(hdfs: WebHdfs, folder: str) -> Iterator[Mapping[str, Any]]:
    """Give a folder's entries, page by page: a response has a limited number."""
    after = ""
    while True:
        response = hdfs.call("GET", "LISTSTATUS_BATCH", folder, **({"startAfter": after} if after else {}))
        listing = response["DirectoryListing"]
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
    """A folder at the top of HDFS for new files and folders, which are then moved below a root.

    The superuser alone may write there. A user who may write to the final folder could replace a new file,
    and the superuser would change the owner of that. Each command has a separate folder.
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
        """Write a file as an entry describes it; a complete file is moved to its path.

        WebHdfsError where that path exists.
        """
        put(self._hdfs, path, stream, entry, temporary=self._temporary(path))

    def make(self, path: str, entry: Entry) -> None:
        """Create a folder as an entry describes it; WebHdfsError where that path exists."""
        temporary = self._temporary(path)
        self._hdfs.call("PUT", "MKDIRS", temporary)
        own(self._hdfs, temporary, entry)
        rename(self._hdfs, temporary, path)

    def _temporary(self, path: str) -> str:
        return f"{self.path}/{hashlib.sha256(path.encode()).hexdigest()}"


def put(hdfs: WebHdfs, path: str, stream: IO[bytes], entry: Entry, *, temporary: str) -> None:
    """Write a file as an entry describes it, first as `temporary`, where the superuser alone may write."""
    hdfs.write(temporary, stream, entry.length, replication=str(entry.replication))
    own(hdfs, temporary, entry)
    hdfs.call("PUT", "SETTIMES", temporary, modificationtime=str(entry.modified))
    rename(hdfs, temporary, path)


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
        # The digit of the group is the mask of named entries; without a mask HDFS computes a wider one.
        has_named = any(not acl_entry.startswith("default:") for acl_entry in entry.acl)
        classes = ((-3, "user"), (-2, "mask" if has_named else "group"), (-1, "other"))
        base = [f"{scope}::{_bits(entry.permission, place)}" for place, scope in classes]
        hdfs.call("PUT", "SETACL", path, aclspec=",".join([*base, *entry.acl]))


def _bits(permission: str, place: int) -> str:
    # HDFS leaves out zeros in front.
    value = int(permission.zfill(3)[place])
    return "".join(letter if value & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
