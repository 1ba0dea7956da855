"""The DataNodes that the NameNode lets register (`dfs.hosts`, its CombinedHostFileManager), and their states.

A file of JSON: a host in it may register, and no other where it names any. A run adds those of the
inventory and takes none away; the verbs write the states, and a later run leaves them as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Entry = dict[str, Any]
NORMAL, IN_MAINTENANCE, DECOMMISSIONED = "NORMAL", "IN_MAINTENANCE", "DECOMMISSIONED"


def read(text: str) -> list[Entry]:
    """Return the entries of the file; none where it is empty. Raises ValueError where it cannot be read."""
    found: Any = json.loads(text) if text.strip() else []
    entries = found if isinstance(found, list) else [found]
    if not all(isinstance(one, dict) and "hostName" in one for one in entries):
        raise ValueError("no list of hosts")
    return entries


def written(entries: Iterable[Entry]) -> str:
    """Return what the file holds, a line per host."""
    lines = ",\n".join(json.dumps(one, sort_keys=True) for one in entries)
    return f"[\n{lines}\n]\n"


def joined(entries: Iterable[Entry], names: Iterable[str]) -> list[Entry]:
    """Return the entries and, after them, the hosts that have none yet."""
    known = list(entries)
    there = {one["hostName"] for one in known}
    return [*known, *({"hostName": name} for name in names if name not in there)]


def changed(entries: Iterable[Entry], name: str, state: str, until: float = 0.0) -> list[Entry]:
    """Return the entries with a host in a state; maintenance ends at `until`, in seconds since the epoch."""
    own: Entry = {"hostName": name}
    if state != NORMAL:
        own["adminState"] = state
    if state == IN_MAINTENANCE:
        own["maintenanceExpireTimeInMS"] = int(until * 1000)
    return [own if one["hostName"] == name else one for one in joined(entries, [name])]
