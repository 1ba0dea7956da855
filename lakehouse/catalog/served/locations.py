"""The locations of the files of a commit's tables: live in HDFS, or in a snapshot.

The commit's own snapshot has its rows. Without one, engines read the files that still exist, and those of the
snapshots before and after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol

from hive_metastore.ttypes import MetaException

from lakehouse.catalog import avro, moved_metadata, readable, snapshots
from lakehouse.catalog.documents import Document, table_format
from lakehouse.catalog.moved_metadata import PositionDeletesError
from lakehouse.catalog.names import Name
from lakehouse.catalog.served.hdfs_root import HdfsRoot, View
from lakehouse.catalog.served.metadata_copies import MetadataCopies
from lakehouse.catalog.store import Entry
from lakehouse.errors import LakehouseError
from lakehouse.next_command import PROGRAM
from plugins.module_utils.lakehouse.webhdfs import NoAnswerError, WebHdfsError

_TABLES = 1024


class Locations(Protocol):
    """The locations of the files of tables and partitions."""

    def table(self, name: Name, document: Document, partitions: Callable[[], Document | None]) -> Document:
        """Return the document of a table with its current locations; MetaException if its files are gone.

        `partitions` returns the document of its first partition, None without any.
        """

    def partitions(self, table: Document, documents: Sequence[Document]) -> list[Document]:
        """Return the documents of some partitions of a table with their current locations."""


class LiveLocations:
    """The locations in the commit."""

    def table(self, _: Name, document: Document, __: Callable[[], Document | None]) -> Document:
        """Return the document unchanged."""
        return document

    def partitions(self, _: Document, documents: Sequence[Document]) -> list[Document]:
        """Return the documents unchanged."""
        return list(documents)


class SnapshotLocations:
    """The locations in HDFS or its snapshots, searched when a table is requested."""

    def __init__(
        self, hdfs_root: HdfsRoot, copies: MetadataCopies, entry: Entry, report: Callable[[str], object]
    ) -> None:
        """`report` gets a line for each table whose files are gone, and if HDFS does not answer."""
        self._hdfs_root, self._copies, self._entry, self._report = hdfs_root, copies, entry, report
        self._live = hdfs_root.view()
        # Files of Iceberg never change.
        self._manifest_list = lru_cache(_TABLES)(self._read_manifest_list)
        self._manifests = lru_cache(_TABLES)(self._read_manifests)
        self._lock = Lock()
        self._reported: set[str] = set()

    def table(self, name: Name, document: Document, partitions: Callable[[], Document | None]) -> Document:
        """Return the document of a table with its current locations; MetaException if its files are gone."""
        try:
            if table_format(document) == "iceberg":
                return self._iceberg(name, document)
            return self._folder(name, document, partitions)
        except NoAnswerError as error:
            # The catalog can be served without HDFS.
            self._say(f"DEGRADED catalog.files locations are as in the commit: {error}")
            return document
        except (LakehouseError, WebHdfsError) as error:
            raise self._refused(name, str(getattr(error, "message", error))) from error

    def partitions(self, table: Document, documents: Sequence[Document]) -> list[Document]:
        """Return the documents of some partitions of a table with their current locations."""
        if table_format(table) in {"iceberg", "view"}:
            return list(documents)
        try:
            views = self._views()
            if views[0].snapshot:
                # The commit's own snapshot has all its files, so many partitions need no check.
                return [_placed(document, views[0]) for document in documents]
            return self._located(documents, views)
        except NoAnswerError as error:
            self._say(f"DEGRADED catalog.files locations are as in the commit: {error}")
            return list(documents)
        except WebHdfsError as error:
            raise MetaException(str(error)) from error

    def _located(self, documents: Sequence[Document], views: Sequence[View]) -> list[Document]:
        """Return partitions with their location in the first view that has it, or else unchanged."""
        locations = (str(document["location"]) for document in documents if document.get("location"))
        missing = [
            location for location in dict.fromkeys(locations) if self._hdfs_root.below(location) is not None
        ]
        view_of: dict[str, View] = {}
        for view in views:
            if missing:
                missing_in_view = set(view.missing(missing))
                view_of |= dict.fromkeys(
                    (location for location in missing if location not in missing_in_view), view
                )
                missing = [location for location in missing if location in missing_in_view]
        return [
            _placed(document, view_of[location])
            if (location := str(document.get("location"))) in view_of
            else document
            for document in documents
        ]

    def _folder(self, name: Name, document: Document, partitions: Callable[[], Document | None]) -> Document:
        """Return the document of a table that consists of the files in its folder."""
        place = readable.folder(document)
        if place is None or self._hdfs_root.below(place) is None:
            return document
        view = next((view for view in self._views() if not view.missing([place])), None)
        if view is not None:
            return _placed(document, view)
        if document.get("partition_keys") and table_format(document) == "hive":
            # A table of Hive needs no folder if its partitions are outside of it.
            first = partitions()
            if first is None or not str(first.get("location")).startswith(f"{place}/"):
                return document
        raise self._refused(name, self._not_found(place))

    def _iceberg(self, name: Name, document: Document) -> Document:
        """Return the document of an Iceberg table; its files never change, so the live ones come first."""
        pointer = str(document["parameters"]["metadata_location"])
        if self._hdfs_root.below(pointer) is None:
            return document
        why = ""
        for view in self._iceberg_views():
            try:
                if missing := self._missing(pointer, view):
                    why = why or ("" if missing == pointer else missing)
                    continue
            except LakehouseError as error:
                why = why or error.message
                continue
            return document if not view.snapshot else self._copied(name, document, view)
        raise self._refused(name, self._not_found(pointer) + (f" ({why})" if why else ""))

    def _copied(self, name: Name, document: Document, view: View) -> Document:
        """Return the document of an Iceberg table with a copy of its metadata that points into a snapshot."""
        parameters = document["parameters"]
        try:
            copy = self._copies.get(str(parameters["metadata_location"]), view)
        except PositionDeletesError:
            restore = f"{PROGRAM} catalog restore {self._entry.short} {name}"
            raise self._refused(
                name,
                "its files are in a snapshot alone, and its position deletes name data files by path;"
                f" to bring it back: {restore}",
            ) from None
        return {**document, "parameters": {**parameters, "metadata_location": copy}}

    def _missing(self, pointer: str, view: View) -> str:
        """Return a metadata file, manifest list or manifest that a view lacks; empty if it has all."""
        if view.missing([pointer]):
            return pointer
        manifest_lists = self._manifest_list(pointer, view)
        missing = view.missing(manifest_lists) or view.missing(self._manifests(manifest_lists, view))
        return missing[0] if missing else ""

    def _read_manifest_list(self, pointer: str, view: View) -> tuple[str, ...]:
        """Return the URI of the manifest list of the current snapshot; none before the first row."""
        try:
            current = readable.snapshot(readable.parse_metadata(view.read(pointer)))
        except ValueError as error:
            raise LakehouseError(f"{pointer} is damaged: {error}") from error
        if current is None:
            return ()
        if not isinstance(manifest_list := current.get("manifest-list"), str):
            raise LakehouseError(f"{pointer} names no manifest list")
        return (manifest_list,)

    def _read_manifests(self, manifest_lists: tuple[str, ...], view: View) -> tuple[str, ...]:
        """Return the URIs of the manifests of a manifest list."""
        manifests: list[str] = []
        for manifest_list in manifest_lists:
            try:
                manifests += moved_metadata.manifests(view.read(manifest_list))
            except avro.DamagedAvroError as error:
                raise LakehouseError(f"{manifest_list} is damaged: {error}") from error
        return tuple(manifests)

    def _views(self) -> list[View]:
        """Return the views to search: the commit's own snapshots, the newest first, live, and the others."""
        ordered = self._ordered_snapshots()
        of_commit = [
            snapshot for snapshot in ordered if snapshot.commit == self._entry.id[: len(snapshot.commit)]
        ]
        return [
            *map(self._hdfs_root.view, of_commit),
            self._live,
            *(self._hdfs_root.view(snapshot) for snapshot in ordered if snapshot not in of_commit),
        ]

    def _iceberg_views(self) -> Iterator[View]:
        yield self._live
        yield from map(self._hdfs_root.view, self._ordered_snapshots())

    def _ordered_snapshots(self) -> list[snapshots.Snapshot]:
        return snapshots.places(self._hdfs_root.snapshots(), self._entry.id, self._entry.time)

    def _not_found(self, place: str) -> str:
        return f"{place} is not there, and no snapshot of the history has it"

    def _refused(self, name: Name, why: str) -> MetaException:
        self._say(f"DEGRADED catalog.files {name}: {why}")
        return MetaException(f"{name} of commit {self._entry.short} cannot be read: {why}")

    def _say(self, line: str) -> None:
        with self._lock:
            if line in self._reported:
                return
            self._reported.add(line)
        self._report(line)


def _placed(document: Document, view: View) -> Document:
    """Return the document of a table or partition with its locations in a view."""
    located = dict(document)
    if document.get("location"):
        located["location"] = view.uri(str(document["location"]))
    storage: Mapping[str, Any] = document.get("storage") or {}
    if storage:
        serde = storage.get("serde") or {}
        parameters = serde.get("parameters") or {}
        new_storage = dict(storage)
        if storage.get("location"):
            new_storage["location"] = view.uri(str(storage["location"]))
        if parameters.get("path"):
            new_storage["serde"] = {
                **serde, "parameters": {**parameters, "path": view.uri(str(parameters["path"]))},
            }  # fmt: skip
        located["storage"] = new_storage
    return located
