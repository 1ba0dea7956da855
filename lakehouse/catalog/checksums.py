"""Checksums of each table's rows at the last commit, so that the next commit reads changed tables alone.

They are in a file beside the objects, and not part of the history: without it, everything is read.
"""

from __future__ import annotations

import json
from typing import Any

from lakehouse.catalog import files
from lakehouse.catalog.build import CATALOG, SETTINGS, Base, Built, settings
from lakehouse.catalog.store import Entry, Store

_FILE = "lakehouse-marks.json"


def base(store: Store, entry: Entry) -> Base | None:
    """Return a commit with its checksums; None without them, or if its tree has another format."""
    checksums = read(store)
    if checksums.get("commit") != entry.id or not isinstance(checksums.get("marks"), dict):
        return None
    settings_file = store.tree(store.tree(entry.tree)[CATALOG]).get(SETTINGS)
    if settings_file is None or store.blob(settings_file) != settings():
        return None
    return Base(entry.tree, checksums["marks"])


def keep(store: Store, entry: Entry, built: Built) -> None:
    """Store the checksums of a commit."""
    write(store, {"commit": entry.id, "marks": dict(built.marks)})


def read(store: Store) -> dict[str, Any]:
    """Return the stored checksums and the commit that they belong to; an empty dict without any."""
    try:
        return dict(json.loads((store.path / _FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def write(store: Store, checksums: dict[str, Any]) -> None:
    """Store the checksums of another repository of the same history."""
    files.write(store.path / _FILE, json.dumps(checksums))
