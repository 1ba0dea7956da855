"""Copies of Iceberg metadata in HDFS whose paths point into a snapshot; they are removed with the server.

A copy is as protected as its original: its folders have the owners, modes and access control lists of those
of the original, and only HDFS's superuser writes there.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from lakehouse.catalog import avro, moved_metadata, readable
from lakehouse.catalog.moved_metadata import Moved
from lakehouse.catalog.served.hdfs_root import HdfsRoot, View
from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse import hdfs_tree
from plugins.module_utils.lakehouse.hdfs_tree import Entry
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, WebHdfsError

_AT_ONCE = 2


# The permission mask for users other than HDFS's superuser.
_READ = 0o555


class MetadataCopies:
    """The copies of one server, in its own folder next to the root of all tables."""

    def __init__(self, hdfs_root: HdfsRoot, session: str) -> None:
        """`session` is the name of the folder, which is unique among servers."""
        self._hdfs_root, self._hdfs = hdfs_root, hdfs_root.hdfs
        self._served_root = f"{hdfs_root.root}-served"
        self._session = session
        self._folders: set[str] = set()
        self._copies: dict[tuple[str, str], str] = {}
        # One lock for each copy, so that a large table does not block others.
        self._locks: dict[tuple[str, str], Lock] = {}
        self._lock = Lock()

    def get(self, pointer: str, view: View) -> str:
        """Return the URI of the copy of a metadata file; a snapshot has all its files.

        Raises LakehouseError if a file is damaged or cannot be rewritten, or HDFS refuses.
        """
        key = pointer, view.snapshot
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._copies:
                self._copies[key] = self._copy(pointer, view)
            return self._copies[key]

    def close(self) -> None:
        """Remove the copies, if there are any."""
        with self._lock:
            is_used, self._folders = bool(self._folders), set()
        if is_used:
            with suppress(WebHdfsError):
                self._delete(f"{self._served_root}/{self._session}")

    def clean(self, report: Callable[[str], object]) -> None:
        """Remove the copies of killed servers: those of this session, and those whose snapshot is gone."""
        try:
            existing = {str(snapshot) for snapshot in self._hdfs_root.snapshots()}
            for session in self._hdfs.names(self._served_root):
                folder = f"{self._served_root}/{session}"
                names = set(self._hdfs.names(folder))
                if session == self._session or not names & existing:
                    self._delete(folder)
                    continue
                for name in names - existing:
                    self._delete(f"{folder}/{name}")
        except NoAnswerError:
            # Each read of a table reports that HDFS does not answer; the next start removes the copies.
            return
        except WebHdfsError as error:
            report(f"DEGRADED catalog.files copies of an earlier server are not removed: {error}")

    def _copy(self, pointer: str, view: View) -> str:
        metadata = readable.parse_metadata(view.read(pointer))
        current = readable.snapshot(metadata)
        if current is None:
            # It refers to no other file.
            return view.uri(pointer)
        manifest_list = str(current["manifest-list"])
        try:
            content = view.read(manifest_list)
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                paths = moved_metadata.manifests(content)
                moved = dict(
                    zip(paths, pool.map(lambda path: self._manifest(path, view), paths), strict=True)
                )
            new_list = self._put(manifest_list, moved_metadata.manifest_list(content, moved), view)
        except avro.DamagedAvroError as error:
            raise LakehouseError(f"the manifests of {pointer} cannot be read: {error}") from error
        return self._put(pointer, moved_metadata.metadata(metadata, new_list.uri, view.uri), view).uri

    def _manifest(self, path: str, view: View) -> Moved:
        return self._put(path, moved_metadata.manifest(view.read(path), view.uri), view)

    def _put(self, uri: str, content: bytes, view: View) -> Moved:
        """Write the copy of a file, with the owner and mode of the original."""
        relative = self._hdfs_root.below(uri)
        if relative is None:
            raise LakehouseError(f"{uri} is not below {self._hdfs_root.root}")
        folder = f"{self._served_root}/{self._session}/{view.snapshot}"
        path = f"{folder}/{relative}"
        original = hdfs_tree.entry(self._hdfs, view.path(relative), relative)
        if original is None:
            raise LakehouseError(f"{uri} is not in {view.snapshot}")
        with self._lock:
            self._make_folders(folder, relative.rpartition("/")[0], view)
        # Two states of a table may share a manifest.
        if self._hdfs.status(path) is None:
            copy = replace(_read_only(original), length=len(content))
            hdfs_tree.put(self._hdfs, path, io.BytesIO(content), copy, temporary=f"{path}.half")
        return Moved(self._hdfs_root.uri(uri, path), len(content))

    def _make_folders(self, folder: str, relative: str, view: View) -> None:
        """Create the folders of a copy like those of its original."""
        for path in (self._served_root, f"{self._served_root}/{self._session}", folder):
            self._make_folder(path, self._hdfs_root.root)
        for parent in hdfs_tree.upwards(relative):
            self._make_folder(f"{folder}/{parent}", view.path(parent))

    def _make_folder(self, path: str, original: str) -> None:
        if path in self._folders:
            return
        entry = hdfs_tree.entry(self._hdfs, original, "")
        if entry is None:
            raise LakehouseError(f"{original} is gone")
        self._hdfs.call("PUT", "MKDIRS", path)
        # A new folder inherits the list of its parent, which its original need not have.
        self._hdfs.call("PUT", "REMOVEACL", path)
        # A file gets the list of its original, and inherits none of its folder.
        acl = tuple(rule for rule in entry.acl if not rule.startswith("default:"))
        hdfs_tree.own(self._hdfs, path, replace(_read_only(entry), acl=acl))
        self._folders.add(path)

    def _delete(self, path: str) -> None:
        self._hdfs.call("DELETE", "DELETE", path, recursive="true")


def _read_only(entry: Entry) -> Entry:
    """Return an entry without write permission; the digit of the group is also the mask of its list."""
    return replace(entry, permission=f"{int(entry.permission, 8) & _READ:03o}")
