"""Rewrite the metadata of an Iceberg table whose files are at other paths.

A metadata file, its current snapshot's manifest list and the manifests contain absolute paths.
Pure: bytes in, bytes out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import avro
from lakehouse.catalog.avro import Values
from lakehouse.catalog.documents import Document

# Returns the new URI of a file.
Move = Callable[[str], str]

_MANIFEST_PATH, _MANIFEST_LENGTH = ("manifest_path",), ("manifest_length",)
_DATA_FILE = "data_file"
_STATUS, _CONTENT = ("status",), (_DATA_FILE, "content")
_FILE_PATH = (_DATA_FILE, "file_path")
# The status of an entry in a manifest, and the content of a file (https://iceberg.apache.org/spec/#manifests).
_DELETED, _POSITION_DELETES = 2, 1


class PositionDeletesError(Exception):
    """A manifest has position deletes, whose rows contain absolute paths of data files too."""


def manifests(content: bytes) -> list[str]:
    """Return the URIs of the manifests of a manifest list; DamagedAvroError."""
    return [str(path) for (path,) in avro.read(content, [_MANIFEST_PATH])]


def manifest(content: bytes, move: Move) -> bytes:
    """Return a manifest with the new paths of its files; DamagedAvroError, PositionDeletesError."""

    def replace(values: Values) -> Values:
        status, kind, path = values
        if status != _DELETED and kind == _POSITION_DELETES:
            raise PositionDeletesError
        return status, kind, move(path)

    return avro.replaced(content, [_STATUS, _CONTENT, _FILE_PATH], replace)


@dataclass(frozen=True)
class Moved:
    """The new URI of a file, and its size."""

    uri: str
    length: int


def manifest_list(content: bytes, moved: Mapping[str, Moved]) -> bytes:
    """Return a manifest list with the new paths of its manifests; DamagedAvroError."""

    def replace(values: Values) -> Values:
        new = moved[values[0]]
        return new.uri, new.length

    return avro.replaced(content, [_MANIFEST_PATH, _MANIFEST_LENGTH], replace)


def metadata(document: Document, manifest_list_uri: str, move: Move) -> bytes:
    """Return a metadata file whose current snapshot has that manifest list, with new paths of statistics.

    Other snapshots stay unchanged: their files are where they were, or gone.
    """
    current = document["current-snapshot-id"]
    snapshots = [
        {**snapshot, "manifest-list": manifest_list_uri} if snapshot["snapshot-id"] == current else snapshot
        for snapshot in document["snapshots"]
    ]
    statistics: dict[str, Any] = {
        key: [_statistics_moved(file, move) for file in document[key]]
        for key in ("statistics", "partition-statistics")
        if isinstance(document.get(key), list)
    }
    return json.dumps({**document, "snapshots": snapshots, **statistics}).encode()


def _statistics_moved(statistics: Document, move: Move) -> Document:
    return {**statistics, "statistics-path": move(str(statistics["statistics-path"]))}
