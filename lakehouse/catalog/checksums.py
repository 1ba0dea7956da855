"""What each table's rows were like at the last commit, so that the next one reads what has changed alone.

It is a file beside the objects, and no part of the history: without it, everything is read.
"""

from __future__ import annotations

import json
from typing import Any

from lakehouse.catalog import files
from lakehouse.catalog.build import CATALOG, SETTINGS, Base, Built, settings
from lakehouse.catalog.store import Entry, Store

_FILE = "lakehouse-marks.json"


def base(store: Store, entry: Entry) -> Base | None:
    """Return the commit with its marks; None where none of it are known, or it was made in another way."""
    said = read(store)
    if said.get("commit") != entry.id or not isinstance(said.get("marks"), dict):
        return None
    made = store.tree(store.tree(entry.tree)[CATALOG]).get(SETTINGS)
    if made is None or store.blob(made) != settings():
        return None
    return Base(entry.tree, said["marks"])


def keep(store: Store, entry: Entry, built: Built) -> None:
    """Keep the marks of a commit that was made."""
    write(store, {"commit": entry.id, "marks": dict(built.marks)})


def read(store: Store) -> dict[str, Any]:
    """Return what is kept, marks and the commit that they are of; nothing where that is not known."""
    try:
        return dict(json.loads((store.path / _FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def write(store: Store, said: dict[str, Any]) -> None:
    """Keep what another repository of the same history has."""
    files.write(store.path / _FILE, json.dumps(said))
