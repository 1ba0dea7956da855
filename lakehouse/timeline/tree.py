"""The files of HDFS as the collector reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lakehouse.census.contents import number
from lakehouse.census.files import MOST_BYTES, DamagedError, HdfsFiles, UnavailableError
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, WebHdfsError, path_of


@dataclass(frozen=True)
class Entry:
    """A file or folder: its name, owner and bytes, and the milliseconds of its last change."""

    name: str
    owner: str
    bytes: int
    modified: int
    folder: bool = False


class Tree(Protocol):
    """A file system by URI or path. DamagedError for one file, UnavailableError where it does not answer."""

    def read(self, uri: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a file of at most so many bytes."""

    def status(self, uri: str) -> Entry | None:
        """Return what there is at a path; None where there is nothing."""

    def names(self, uri: str) -> list[Entry]:
        """Return what is in a folder; nothing where there is no such folder."""

    def owner(self, uri: str) -> str:
        """Return who owns a file; "" where that is not known."""


class HdfsTree(HdfsFiles):
    """The files of HDFS over HTTP, as a user."""

    def status(self, uri: str) -> Entry | None:
        """Return what there is at a path; None where there is nothing."""
        if (path := path_of(uri)) is None:
            raise DamagedError(f"{uri[:300]} is not in HDFS")
        try:
            row = self._hdfs.status(path)
            return None if row is None else _entry(row)
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from None
        except WebHdfsError as error:
            raise DamagedError(str(error)) from None

    def names(self, uri: str) -> list[Entry]:
        """Return what is in a folder; nothing where there is no such folder."""
        if self.status(uri) is None:
            return []
        try:
            rows = self._hdfs.call("GET", "LISTSTATUS", path_of(uri) or "/")["FileStatuses"]["FileStatus"]
            return [_entry(row) for row in rows]
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from None
        except (WebHdfsError, LookupError, TypeError, ValueError) as error:
            raise DamagedError(f"{uri} cannot be listed: {error}") from None

    def owner(self, uri: str) -> str:
        """Return who owns a file; "" where that is not known."""
        try:
            entry = self.status(uri) if uri else None
        except DamagedError:
            return ""
        return entry.owner if entry else ""


def _entry(row: dict[str, object]) -> Entry:
    return Entry(
        str(row.get("pathSuffix") or ""),
        str(row.get("owner") or ""),
        number(row["length"], "length"),
        number(row["modificationTime"], "modificationTime"),
        row["type"] == "DIRECTORY",
    )
