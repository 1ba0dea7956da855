"""A tree of HDFS as a list: every directory and file with what makes it what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.webhdfs import WebHdfs

_AT_ONCE = 8


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
        """The same for a file that nobody has put another one in the place of, of the same content."""
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
    return backup_manifest.relative(f"{folder}/{name}".lstrip("/"), f"hdfs {folder}")


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


def write(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write a line of JSON per entry."""
    with path.open("w", encoding="utf-8") as stream:
        for name in sorted(entries):
            stream.write(json.dumps(asdict(entries[name])) + "\n")


def read(path: Path) -> dict[str, Entry]:
    """Return what was written."""
    with path.open(encoding="utf-8") as stream:
        rows = (backup_manifest.entry(backup_manifest.parse(line, path.name)) for line in stream)
        return {row["path"]: _known(row) for row in rows}


def _known(row: Mapping[str, Any]) -> Entry:
    """Return an entry by the fields that this release has; ValueError where another wrote more."""
    try:
        return Entry(**{**row, "acl": tuple(row["acl"])})
    except TypeError as error:
        raise ValueError(f"the list of files is of another release: {error}") from None
