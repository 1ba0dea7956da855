"""The DataNodes that the NameNode lets register (`dfs.hosts`, its CombinedHostFileManager), and their states.

A JSON file: if it has entries, only their hosts may register. A run adds the hosts of the inventory and
removes none; the verbs write the states, which later runs keep.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Entry = dict[str, Any]
NORMAL, IN_MAINTENANCE, DECOMMISSIONED = "NORMAL", "IN_MAINTENANCE", "DECOMMISSIONED"


def read(text: str) -> list[Entry]:
    """Return the entries of the file; none if it is empty. Raises ValueError if it is invalid."""
    document: Any = json.loads(text) if text.strip() else []
    entries = document if isinstance(document, list) else [document]
    if not all(isinstance(entry, dict) and "hostName" in entry for entry in entries):
        raise ValueError("no list of hosts")
    return entries


def written(entries: Iterable[Entry]) -> str:
    """Return the content of the file, a line per host."""
    lines = ",\n".join(json.dumps(entry, sort_keys=True) for entry in entries)
    return f"[\n{lines}\n]\n"


def joined(entries: Iterable[Entry], names: Iterable[str]) -> list[Entry]:
    """Return the entries, followed by new ones for the other hosts."""
    present = list(entries)
    present_names = {entry["hostName"] for entry in present}
    return [*present, *({"hostName": name} for name in names if name not in present_names)]


def changed(entries: Iterable[Entry], name: str, state: str, until: float = 0.0) -> list[Entry]:
    """Return the entries with a new state of a host; maintenance ends at `until`, seconds since the epoch."""
    new_entry: Entry = {"hostName": name}
    if state != NORMAL:
        new_entry["adminState"] = state
    if state == IN_MAINTENANCE:
        new_entry["maintenanceExpireTimeInMS"] = int(until * 1000)
    return [new_entry if entry["hostName"] == name else entry for entry in joined(entries, [name])]
