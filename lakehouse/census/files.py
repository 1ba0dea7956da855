"""The files of HDFS as the census reads them: over HTTP, with limits."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol

from lakehouse.census.contents import number
from plugins.module_utils.lakehouse import hdfs_gate
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.probes import fetch
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, NoPathError, WebHdfs, WebHdfsError, path_of

# Of one file of metadata.
MOST_BYTES = 256 << 20
# Of a table: its files and folders.
MOST_ENTRIES = 500_000
_MOST_DEPTH = 64


class DamagedError(Exception):
    """A table cannot be described: one of its files is missing, too large or damaged, with the reason."""


class MissingError(DamagedError):
    """A file or folder that a table needs is not there."""


class UnavailableError(Exception):
    """The file system does not answer: no table can be described."""


@dataclass(frozen=True)
class Entry:
    """A file or folder in a listing; `modified` is in milliseconds since 1970.

    `id` is that of HDFS: a file that replaces another one has a new one.
    """

    path: str
    bytes: int = 0
    modified: int = 0
    folder: bool = False
    id: int = 0


class Files(Protocol):
    """A file system by URI or path. DamagedError for one file, UnavailableError where it does not answer."""

    def entries(self, uri: str) -> list[Entry] | None:
        """Return the files and folders in a folder; None where there is no such folder."""

    def read(self, uri: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a file of at most so many bytes."""

    def part(self, uri: str, offset: int, length: int) -> bytes:
        """Return so many bytes of a file from an offset on, fewer at its end."""


class HdfsFiles:
    """The files of HDFS over HTTP, as a user."""

    def __init__(self, url: str, user: str) -> None:
        self._hdfs = WebHdfs(url, user)

    def entries(self, uri: str) -> list[Entry] | None:
        """Return the files and folders in a folder, or the file of this URI; None where there is neither."""
        path = _path(uri)
        try:
            answer = self._hdfs.call("GET", "LISTSTATUS", path)
        except NoPathError:
            return None
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from None
        except WebHdfsError as error:
            if getattr(error.__cause__, "code", None) == _NOT_FOUND:
                return None
            raise DamagedError(str(error)) from None
        try:
            return [_entry(path, row) for row in answer["FileStatuses"]["FileStatus"]]
        except (LookupError, TypeError, ValueError) as error:
            raise DamagedError(f"LISTSTATUS {path}: no answer of WebHDFS: {error}") from None

    def read(self, uri: str, most: int = MOST_BYTES) -> bytes:
        """Return the content of a file of at most so many bytes."""
        content = self._content(uri, most + 1)
        if len(content) > most:
            raise DamagedError(f"{uri} has more than {counted(most, 'byte')}")
        return content

    def part(self, uri: str, offset: int, length: int) -> bytes:
        """Return so many bytes of a file from an offset on, fewer at its end."""
        return self._content(uri, length, offset=str(offset), length=str(length))

    def _content(self, uri: str, most: int, **query: str) -> bytes:
        path = _path(uri)
        try:
            with self._hdfs.reading(path, **query) as stream:
                content = stream.read(most)
                expected = _body_length(stream)
        except NoPathError:
            raise MissingError(f"{uri} is not there") from None
        except NoAnswerError as error:
            raise UnavailableError(str(error)) from None
        except WebHdfsError as error:
            if getattr(error.__cause__, "code", None) == _NOT_FOUND:
                raise MissingError(f"{uri} is not there") from None
            raise DamagedError(str(error)) from None
        except (OSError, HTTPException) as error:
            raise DamagedError(f"{uri} cannot be read: {error}") from None
        if expected is not None and len(content) < min(expected, most):
            raise DamagedError(
                f"{uri} cannot be read: {counted(len(content), 'byte')} of {expected} were received"
            )
        return content


_NOT_FOUND = 404


def free_bytes(url: str) -> int | None:
    """Return the bytes that DataNodes have free, by the NameNode at a URL; None if it does not answer."""
    try:
        return number(hdfs_gate.beans(fetch(url + hdfs_gate.COUNTERS).decode())["CapacityRemaining"], "bytes")
    except (OSError, LookupError, TypeError, ValueError):
        return None


def below(files: Files, uri: str) -> Iterator[Entry]:
    """Yield all files below a folder that engines read, and the folders; DamagedError where there is none.

    Names that begin with a dot or an underscore are hidden, as Hive hides them.
    """
    waiting, count = [(uri, 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        entries = files.entries(folder)
        if entries is None:
            if depth:
                continue  # It was removed since its parent was listed.
            raise DamagedError(f"{folder} is not there")
        for entry in entries:
            if is_hidden(entry.path):
                continue
            count += 1
            if count > MOST_ENTRIES:
                raise DamagedError(f"{uri} has more than {MOST_ENTRIES} files")
            if entry.folder and depth >= _MOST_DEPTH:
                raise DamagedError(f"{uri} has folders deeper than {_MOST_DEPTH}")
            if entry.folder:
                waiting.append((entry.path, depth + 1))
            yield entry


def is_hidden(path: str) -> bool:
    """Return whether engines ignore a file or folder of this name."""
    return posixpath.basename(path).startswith((".", "_"))


def _body_length(stream: Any) -> int | None:
    """Return the Content-Length of a response; None for a chunked one, whose end is marked."""
    length = stream.headers.get("Content-Length")
    return int(length) if length and length.isdecimal() else None


def _path(uri: str) -> str:
    path = path_of(uri)
    if path is None:
        raise DamagedError(f"{uri[:300]} is not in HDFS")
    return path


def _entry(folder: str, row: Any) -> Entry:
    name = str(row["pathSuffix"])
    return Entry(
        posixpath.join(folder, name) if name else folder,
        number(row["length"], "length"),
        number(row["modificationTime"], "modificationTime"),
        row["type"] == "DIRECTORY",
        int(row.get("fileId") or 0),
    )
