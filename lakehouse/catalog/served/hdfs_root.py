"""The folder of HDFS above all tables, live and in its snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse.catalog import snapshots
from lakehouse.catalog.snapshots import Snapshot
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.webhdfs import NoPathError, WebHdfs, is_path, path_of

# The limit of a metadata file, which a service with little memory reads completely.
MOST_BYTES = 32 << 20
# With so many files or more, their folder is listed.
_FEW = 8


@dataclass(frozen=True)
class HdfsRoot:
    """The folder, with a client. Methods raise WebHdfsError if HDFS refuses or does not answer."""

    hdfs: WebHdfs
    root: str

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots of the history, the oldest first; none if the folder is not snapshottable."""
        return snapshots.known(self.hdfs.names(f"{self.root}/.snapshot"))

    def view(self, snapshot: Snapshot | None = None) -> View:
        """Return the view of a snapshot, or the live view."""
        return View(self, str(snapshot or ""))

    def below(self, uri: str) -> str | None:
        """Return the path of a URI relative to the root; None outside of it, or in a snapshot."""
        path = path_of(uri)
        if path is None or not path.startswith(f"{self.root}/") or not is_path(path):
            return None
        try:
            relative = checked_document.relative(path.removeprefix(f"{self.root}/"), "")
        except DocumentError:
            return None
        return None if relative.split("/")[0] == ".snapshot" else relative

    def uri(self, like: str, path: str) -> str:
        """Return the URI of a path in the file system of another URI."""
        scheme, slashes, rest = like.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}{path}" if slashes else path


@dataclass(frozen=True)
class View:
    """The files of the root in a snapshot; `snapshot` is empty for the live files.

    Files outside of the root are live.
    """

    hdfs_root: HdfsRoot
    snapshot: str

    def path(self, below: str) -> str:
        """Return the path in HDFS of a path relative to the root."""
        root = self.hdfs_root.root
        return f"{root}/.snapshot/{self.snapshot}/{below}" if self.snapshot else f"{root}/{below}"

    def uri(self, uri: str) -> str:
        """Return the URI by which an engine reads a file of this view."""
        relative = self.hdfs_root.below(uri)
        if relative is None or not self.snapshot:
            return uri
        return self.hdfs_root.uri(uri, self.path(relative))

    def missing(self, uris: Iterable[str]) -> list[str]:
        """Return the URIs whose files are missing; those of other file systems are assumed to exist."""
        by_folder: dict[str, list[tuple[str, str]]] = {}
        missing: list[str] = []
        for uri in uris:
            path = path_of(self.uri(uri))
            if path is not None and not is_path(path):
                missing.append(uri)
            elif path is not None:
                folder, _, name = path.rpartition("/")
                by_folder.setdefault(folder, []).append((name, uri))
        for folder, files in by_folder.items():
            if len(files) < _FEW:
                missing += [
                    uri for name, uri in files if self.hdfs_root.hdfs.status(f"{folder}/{name}") is None
                ]
            else:
                names = set(self.hdfs_root.hdfs.names(folder))
                missing += [uri for name, uri in files if name not in names]
        return missing

    def read(self, uri: str) -> bytes:
        """Return the content of a file; LakehouseError if it is missing or too large."""
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
