"""The few calls of WebHDFS that provisioning needs: milliseconds instead of a JVM per command.

Reference: the page "WebHDFS REST API" of the Hadoop release in versions.yml.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

TIMEOUT_SECONDS = 30.0
# Of an answer, and of a file that is read as a whole: a listing of half a million files is shorter.
MOST_BYTES = 256 << 20
_REASON_BYTES = 1 << 16
# Of a path (org.apache.hadoop.hdfs.server.common.HdfsServerConstants.MAX_PATH_LENGTH).
_PATH_BYTES = 8000
_URI = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://[^/]*)?(?P<path>.*)", re.DOTALL)


class WebHdfsError(Exception):
    """HDFS refused a call: the operation, the path and the server's words."""


class NoAnswerError(WebHdfsError):
    """No answer from the NameNode's address."""


class NoPathError(WebHdfsError):
    """Nothing in HDFS can be called so: no question is needed."""


def is_path(path: str) -> bool:
    """Tell whether HDFS can have a file of this path (org.apache.hadoop.hdfs.DFSUtilClient.isValidName)."""
    parts = path.rstrip("/").split("/")[1:]
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return False
    is_valid = not any(part in {"", ".", ".."} or {":", "\0"} & set(part) for part in parts)
    return path.startswith("/") and size <= _PATH_BYTES and is_valid


def path_of(uri: str) -> str | None:
    """Return the path in HDFS of a URI, or of a path, in one spelling; None for another file system.

    It is parsed as Hadoop's Path does: neither %XX nor a question mark is special, and every authority of a
    URI means the one HDFS.
    """
    match = _URI.fullmatch(uri)
    if match is None or match["scheme"] not in {None, "hdfs"}:
        return None
    return "/" + "/".join(part for part in match["path"].split("/") if part)


class WebHdfs:
    """One NameNode, as one user (simple authentication).

    `addresses` are those of DataNodes by name, where this machine does not know the names.
    """

    def __init__(self, url: str, user: str, addresses: Mapping[str, str] | None = None) -> None:
        self.url = url
        self.user = user
        self._addresses = addresses or {}

    def call(self, method: str, operation: str, path: str, **query: str) -> dict[str, Any]:
        """Run one operation; return the parsed answer, raise WebHdfsError."""
        if not is_path(path):
            raise NoPathError(f"{operation} {path[:200]}: no path of HDFS")
        request = urllib.request.Request(self._address(operation, path, query), method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                body = _bounded(response)
        except urllib.error.HTTPError as error:
            raise WebHdfsError(f"{operation} {path}: {self._reason(error)}") from error
        except (OSError, HTTPException) as error:
            raise NoAnswerError(f"{operation} {path}: {self.url}: {error}") from error
        try:
            return dict(json.loads(body)) if body else {}
        except (ValueError, TypeError, RecursionError) as error:
            raise WebHdfsError(f"{operation} {path}: no answer of WebHDFS: {error}") from error

    def status(self, path: str) -> dict[str, Any] | None:
        """Owner, group, permission, type and length of a path, or None where there is nothing."""
        try:
            return dict(self.call("GET", "GETFILESTATUS", path)["FileStatus"])
        except WebHdfsError as error:
            if (
                isinstance(error.__cause__, urllib.error.HTTPError)
                and error.__cause__.code == HTTPStatus.NOT_FOUND
            ):
                return None
            raise

    def names(self, path: str) -> list[str]:
        """Return the names in a folder; none where there is no such folder."""
        return list(self.sizes(path))

    def sizes(self, path: str) -> dict[str, int]:
        """Return the sizes of a folder's entries by name, 0 for folders; none for a missing folder."""
        if self.status(path) is None:
            return {}
        listed = self.call("GET", "LISTSTATUS", path)["FileStatuses"]["FileStatus"]
        return {str(row["pathSuffix"]): int(row["length"]) for row in listed}

    def attributes(self, path: str) -> dict[str, str]:
        """Return the extended attributes of a path whose value is text."""
        rows = self.call("GET", "GETXATTRS", path, encoding="text")["XAttrs"]
        return {entry["name"]: str(entry["value"] or "").strip('"') for entry in rows}

    def set_attribute(self, path: str, name: str, value: str) -> None:
        """Give a path that was just written an extended attribute."""
        self.call(
            "PUT", "SETXATTR", path,
            **{"xattr.name": name, "xattr.value": f'"{value}"', "flag": "CREATE"},
        )  # fmt: skip

    def read(self, path: str) -> bytes:
        """Return what is in a file of at most MOST_BYTES."""
        with self.reading(path) as stream:
            try:
                return _bounded(stream)
            except (OSError, HTTPException) as error:
                raise WebHdfsError(f"OPEN {path}: {error}") from error

    @contextmanager
    def reading(self, path: str, **query: str) -> Iterator[IO[bytes]]:
        """Give the stream of a file's bytes: the NameNode names a DataNode that has it."""
        opened = self.call("GET", "OPEN", path, noredirect="true", **query)
        try:
            response = urllib.request.urlopen(self._datanode(opened), timeout=TIMEOUT_SECONDS)
        except (LookupError, ValueError, AttributeError) as error:
            raise WebHdfsError(f"OPEN {path}: no answer of WebHDFS: {error}") from error
        except urllib.error.HTTPError as error:
            raise WebHdfsError(f"OPEN {path}: {self._reason(error)}") from error
        except (OSError, HTTPException) as error:
            raise WebHdfsError(f"OPEN {path}: {error}") from error
        with response:
            yield response

    def upload(self, source: str, path: str) -> None:
        """Write a local file."""
        with Path(source).open("rb") as stream:
            length = stream.seek(0, 2)
            stream.seek(0)
            self.write(path, stream, length)

    def write(self, path: str, stream: IO[bytes], length: int, **query: str) -> None:
        """Write so many bytes of a stream as a file: the NameNode names the DataNode that takes them."""
        created = self.call("PUT", "CREATE", path, overwrite="true", noredirect="true", **query)
        try:
            request = urllib.request.Request(
                self._datanode(created),
                data=stream,
                method="PUT",
                headers={"Content-Type": "application/octet-stream"},
            )
        except (LookupError, ValueError, AttributeError) as error:
            raise WebHdfsError(f"CREATE {path}: no answer of WebHDFS: {error}") from error
        request.add_unredirected_header("Content-Length", str(length))
        try:
            urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS * 10).close()
        except urllib.error.HTTPError as error:
            raise WebHdfsError(f"CREATE {path}: {self._reason(error)}") from error
        except (OSError, HTTPException) as error:
            raise WebHdfsError(f"CREATE {path}: {error}") from error

    def _datanode(self, answer: Mapping[str, Any]) -> str:
        """Return the address of the DataNode that the NameNode names."""
        place = urllib.parse.urlsplit(str(answer["Location"]))
        address = self._addresses.get(str(place.hostname), place.hostname)
        # The NameNode leaves letters beyond ASCII as they are.
        path = urllib.parse.quote(place.path, safe="/%")
        return place._replace(scheme="http", netloc=f"{address}:{place.port}", path=path).geturl()

    def _address(self, operation: str, path: str, query: dict[str, str]) -> str:
        encoded = urllib.parse.urlencode({"op": operation, "user.name": self.user, **query})
        return f"{self.url}/webhdfs/v1{urllib.parse.quote(path)}?{encoded}"

    @staticmethod
    def _reason(error: urllib.error.HTTPError) -> str:
        body = error.read(_REASON_BYTES).decode(errors="replace")
        try:
            return str(json.loads(body)["RemoteException"]["message"]).splitlines()[0]
        except (ValueError, LookupError, TypeError):
            return f"HTTP {error.code}: {body[:200]}"


def _bounded(response: Any) -> bytes:
    """Return what an answer holds; WebHdfsError for more than any has."""
    content = bytes(response.read(MOST_BYTES + 1))
    if len(content) > MOST_BYTES:
        raise WebHdfsError(f"HDFS sends more than {MOST_BYTES >> 20} MiB")
    return content
