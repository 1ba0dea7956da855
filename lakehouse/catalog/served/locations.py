"""Where engines find the files of a commit's tables: in HDFS as it is now, or in a snapshot of it.

The commit's own snapshot has the rows of then. Without one, engines read the files that are still there, and
those of the snapshots before and after the commit.
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
    """Where the files of tables and partitions are."""

    def table(self, name: Name, document: Document, partitions: Callable[[], Document | None]) -> Document:
        """Return the document of a table, with the places of its files; MetaException where they are gone.

        `partitions` returns the document of its first partition, None where it has none.
        """

    def partitions(self, table: Document, documents: Sequence[Document]) -> list[Document]:
        """Return the documents of some partitions of a table, with the places of their files."""


class LiveLocations:
    """The places that the commit says."""

    def table(self, _: Name, document: Document, __: Callable[[], Document | None]) -> Document:
        """Return the document as it is."""
        return document

    def partitions(self, _: Document, documents: Sequence[Document]) -> list[Document]:
        """Return the documents as they are."""
        return list(documents)


class SnapshotLocations:
    """The places in HDFS or its snapshots, looked for when a table is asked for."""

    def __init__(
        self, hdfs_root: HdfsRoot, copies: MetadataCopies, entry: Entry, report: Callable[[str], object]
    ) -> None:
        """`report` gets a line for each table whose files are gone, and when HDFS is silent."""
        self._hdfs_root, self._copies, self._entry, self._report = hdfs_root, copies, entry, report
        self._live = hdfs_root.view()
        # No file of Iceberg changes, once it is there.
        self._manifest_list = lru_cache(_TABLES)(self._read_manifest_list)
        self._manifests = lru_cache(_TABLES)(self._read_manifests)
        self._lock = Lock()
        self._reported: set[str] = set()

    def table(self, name: Name, document: Document, partitions: Callable[[], Document | None]) -> Document:
        """Return the document of a table, with the places of its files; MetaException where they are gone."""
        try:
            if table_format(document) == "iceberg":
                return self._iceberg(name, document)
            return self._folder(name, document, partitions)
        except NoAnswerError as error:
            # What is served needs the repository alone.
            self._say(f"DEGRADED catalog.files locations are as in the commit: {error}")
            return document
        except (LakehouseError, WebHdfsError) as error:
            raise self._refused(name, str(getattr(error, "message", error))) from error

    def partitions(self, table: Document, documents: Sequence[Document]) -> list[Document]:
        """Return the documents of some partitions of a table, with the places of their files."""
        if table_format(table) in {"iceberg", "view"}:
            return list(documents)
        try:
            views = self._views()
            if views[0].snapshot:
                # Made for the commit: it has what that names, and many partitions need no look.
                return [_placed(one, views[0]) for one in documents]
            return self._found(documents, views)
        except NoAnswerError as error:
            self._say(f"DEGRADED catalog.files locations are as in the commit: {error}")
            return list(documents)
        except WebHdfsError as error:
            raise MetaException(str(error)) from error

    def _found(self, documents: Sequence[Document], views: Sequence[View]) -> list[Document]:
        """Return partitions, each with its place in the first view that has it; else as it is."""
        places = {
            str(one["location"]): one
            for one in documents
            if one.get("location") and self._hdfs_root.below(str(one["location"])) is not None
        }
        chosen: dict[str, View] = {}
        left = list(places)
        for view in views:
            if left:
                missing = set(view.missing(left))
                chosen |= dict.fromkeys((one for one in left if one not in missing), view)
                left = [one for one in left if one in missing]
        return [
            _placed(one, chosen[place]) if (place := str(one.get("location"))) in chosen else one
            for one in documents
        ]

    def _folder(self, name: Name, document: Document, partitions: Callable[[], Document | None]) -> Document:
        """Return the document of a table whose files are what its folder holds."""
        place = readable.folder(document)
        if place is None or self._hdfs_root.below(place) is None:
            return document
        view = next((view for view in self._views() if not view.missing([place])), None)
        if view is not None:
            return _placed(document, view)
        if document.get("partition_keys") and table_format(document) == "hive":
            # A table of Hive needs no folder of its own if its partitions have theirs elsewhere.
            first = partitions()
            if first is None or not str(first.get("location")).startswith(f"{place}/"):
                return document
        raise self._refused(name, self._gone(place))

    def _iceberg(self, name: Name, document: Document) -> Document:
        """Return the document of an Iceberg table: its files do not change, so those of now come first."""
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
        raise self._refused(name, self._gone(pointer) + (f" ({why})" if why else ""))

    def _copied(self, name: Name, document: Document, view: View) -> Document:
        """Return the document of an Iceberg table whose metadata leads into a snapshot."""
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
        """Return a metadata file, manifest list or manifest that a view lacks; empty where it has all."""
        if view.missing([pointer]):
            return pointer
        manifest_lists = self._manifest_list(pointer, view)
        missing = view.missing(manifest_lists) or view.missing(self._manifests(manifest_lists, view))
        return missing[0] if missing else ""

    def _read_manifest_list(self, pointer: str, view: View) -> tuple[str, ...]:
        """Return the URI of the manifest list that a metadata file names; none before the first row."""
        try:
            current = readable.snapshot(readable.parse_metadata(view.read(pointer)))
        except ValueError as error:
            raise LakehouseError(f"{pointer} is damaged: {error}") from error
        if current is None:
            return ()
        if not isinstance(listed := current.get("manifest-list"), str):
            raise LakehouseError(f"{pointer} names no manifest list")
        return (listed,)

    def _read_manifests(self, manifest_lists: tuple[str, ...], view: View) -> tuple[str, ...]:
        """Return the URIs of the manifests of a manifest list."""
        found: list[str] = []
        for listed in manifest_lists:
            try:
                found += moved_metadata.manifests(view.read(listed))
            except avro.DamagedAvroError as error:
                raise LakehouseError(f"{listed} is damaged: {error}") from error
        return tuple(found)

    def _views(self) -> list[View]:
        """Return where files may be: the commit's own snapshots, the newest first, now, and others."""
        order = self._order()
        own = [one for one in order if one.commit == self._entry.id[: len(one.commit)]]
        return [
            *map(self._hdfs_root.view, own),
            self._live,
            *(self._hdfs_root.view(one) for one in order if one not in own),
        ]

    def _iceberg_views(self) -> Iterator[View]:
        yield self._live
        yield from map(self._hdfs_root.view, self._order())

    def _order(self) -> list[snapshots.Snapshot]:
        return snapshots.places(self._hdfs_root.snapshots(), self._entry.id, self._entry.time)

    def _gone(self, place: str) -> str:
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
    """Return the document of a table or partition, with its places as a view has them."""
    placed = dict(document)
    if document.get("location"):
        placed["location"] = view.uri(str(document["location"]))
    storage: Mapping[str, Any] = document.get("storage") or {}
    if storage:
        serde = storage.get("serde") or {}
        parameters = serde.get("parameters") or {}
        changed = dict(storage)
        if storage.get("location"):
            changed["location"] = view.uri(str(storage["location"]))
        if parameters.get("path"):
            changed["serde"] = {
                **serde, "parameters": {**parameters, "path": view.uri(str(parameters["path"]))},
            }  # fmt: skip
        placed["storage"] = changed
    return placed
