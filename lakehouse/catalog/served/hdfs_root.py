"""The folder of HDFS above all tables, as it is now and as its snapshots have it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.catalog import snapshots
from lakehouse.catalog.snapshots import Snapshot
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.webhdfs import NoPathError, WebHdfs, is_path, path_of

# Of a file of metadata that is read as a whole, by a service with little memory.
MOST_BYTES = 32 << 20
# From so many files of a folder on it is listed.
_FEW = 8


@dataclass(frozen=True)
class HdfsRoot:
    """The folder, and who asks for it. Methods raise WebHdfsError where HDFS refuses or is silent."""

    hdfs: WebHdfs
    root: str

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the history, the oldest first; none where none can be made."""
        return snapshots.known(self.hdfs.names(f"{self.root}/.snapshot"))

    def view(self, snapshot: Snapshot | None = None) -> View:
        """Return the files that a snapshot has, or those of now."""
        return View(self, str(snapshot or ""))

    def below(self, uri: str) -> str | None:
        """Return the path below the root of a URI; None for what is elsewhere, or in a snapshot."""
        path = path_of(uri)
        if path is None or not path.startswith(f"{self.root}/") or not is_path(path):
            return None
        try:
            below = checked_document.relative(path.removeprefix(f"{self.root}/"), "")
        except DocumentError:
            return None
        return None if below.split("/")[0] == ".snapshot" else below

    def uri(self, like: str, path: str) -> str:
        """Return the URI of a path, which names its file system as another URI does."""
        scheme, slashes, rest = like.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}{path}" if slashes else path


@dataclass(frozen=True)
class View:
    """The files of the root as a snapshot has them; `snapshot` is empty for the files of now.

    Files elsewhere are those of now.
    """

    hdfs_root: HdfsRoot
    snapshot: str

    def path(self, below: str) -> str:
        """Return the path in HDFS of a path below the root."""
        root = self.hdfs_root.root
        return f"{root}/.snapshot/{self.snapshot}/{below}" if self.snapshot else f"{root}/{below}"

    def uri(self, uri: str) -> str:
        """Return the URI by which an engine reads a file of this view."""
        below = self.hdfs_root.below(uri)
        if below is None or not self.snapshot:
            return uri
        return self.hdfs_root.uri(uri, self.path(below))

    def missing(self, uris: Iterable[str]) -> list[str]:
        """Return the URIs whose files are not there; those of other file systems are taken to be there."""
        by_folder: dict[str, list[tuple[str, str]]] = {}
        found: list[str] = []
        for uri in uris:
            path = path_of(self.uri(uri))
            if path is not None and not is_path(path):
                found.append(uri)
            elif path is not None:
                folder, _, name = path.rpartition("/")
                by_folder.setdefault(folder, []).append((name, uri))
        for folder, files in by_folder.items():
            if len(files) < _FEW:
                found += [
                    uri for name, uri in files if self.hdfs_root.hdfs.status(f"{folder}/{name}") is None
                ]
            else:
                names = set(self.hdfs_root.hdfs.names(folder))
                found += [uri for name, uri in files if name not in names]
        return found

    def read(self, uri: str) -> bytes:
        """Return what is in a file; LakehouseError for one that is not there or too large."""
        path = path_of(self.uri(uri))
        if path is None:
            raise LakehouseError(f"{uri} is not in HDFS")
        try:
            status = self.hdfs_root.hdfs.status(path)
        except NoPathError as error:
            raise LakehouseError(str(error)) from error
        if status is None:
            raise LakehouseError(f"{path} is not there")
        if int(status["length"]) > MOST_BYTES:
            raise LakehouseError(f"{path} has more than {MOST_BYTES >> 20} MiB")
        return self.hdfs_root.hdfs.read(path)
