"""The list of a backup's tree of HDFS, a line for each directory and file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.hdfs_tree import Entry, walk

__all__ = ["Entry", "read", "walk", "write"]


def write(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write a line of JSON per entry."""
    with path.open("w", encoding="utf-8") as stream:
        for name in sorted(entries):
            stream.write(json.dumps(asdict(entries[name])) + "\n")


def read(path: Path) -> dict[str, Entry]:
    """Return what was written."""
    with path.open(encoding="utf-8") as stream:
        rows = (backup_manifest.entry(checked_document.parse(line, path.name)) for line in stream)
        return {row["path"]: _known(row) for row in rows}


def _known(row: Mapping[str, Any]) -> Entry:
    """Return an entry by the fields that this release has; ValueError where another wrote more."""
    try:
        return Entry(**{**row, "acl": tuple(row["acl"])})
    except TypeError as error:
        raise ValueError(f"the list of files is of another release: {error}") from None
