"""Whether a table of a commit can be read as it was then: the files that say which rows it had are there."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection
from typing import Any, Protocol

from lakehouse.catalog.documents import Document, location, table_format

_GZIPPED = ".gz.metadata.json"
_ENTRY, _CHECKPOINT = re.compile(r"(\d{20})\.json"), re.compile(r"(\d{20})\.checkpoint\b.*")


class Files(Protocol):
    """Files by URI."""

    def exists(self, uri: str) -> bool:
        """Tell whether there is such a file or folder."""

    def read(self, uri: str) -> bytes:
        """Return what is in a file."""

    def names(self, uri: str) -> list[str]:
        """Return the names in a folder."""


def lost(said: Document, files: Files) -> str:
    """Return what is gone of a table's state in a commit; empty where it can be read, and for a view.

    A file with rows is not looked for: there may be many. Iceberg keeps those of a snapshot that it has; the
    VACUUM of Delta does not.
    """
    found = table_format(said)
    if found == "iceberg":
        return _lost_iceberg(str(said["parameters"]["metadata_location"]), files)
    place = location(said)
    if not place:
        return ""
    if found == "delta" and (version := said.get("data", {}).get("version")):
        return _lost_delta(files.names(f"{place}/_delta_log"), int(version))
    return "" if files.exists(place) else f"{place} is gone"


def iceberg(place: str, files: Files) -> dict[str, Any]:
    """Return the metadata of an Iceberg table of its file; none where that is not in HDFS."""
    content = files.read(place)
    return dict(json.loads(gzip.decompress(content) if place.endswith(_GZIPPED) else content or b"{}"))


def snapshot(metadata: Document) -> Document | None:
    """Return the snapshot that is an Iceberg table's current one; None before the first row."""
    current = metadata.get("current-snapshot-id")
    return next((one for one in metadata.get("snapshots", ()) if one["snapshot-id"] == current), None)


def _lost_iceberg(place: str, files: Files) -> str:
    if not files.exists(place):
        return f"{place} is gone"
    found = snapshot(iceberg(place, files)) or {}
    # A snapshot that has expired takes its list of manifests with it.
    listed = found.get("manifest-list")
    return f"snapshot {found['snapshot-id']} has expired" if listed and not files.exists(listed) else ""


def _lost_delta(names: Collection[str], version: int) -> str:
    """Return which entry is missing from the checkpoint before a version of Delta, or from the first one."""
    entries = {int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))}
    checkpoints = {int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))}
    first = max((one for one in checkpoints if one <= version), default=-1) + 1
    missing = next((one for one in range(first, version + 1) if one not in entries), None)
    return "" if missing is None else f"its log has no version {missing} any more"
