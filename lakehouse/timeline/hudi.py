"""Commits of a Hudi table from the names of the files of its timeline.

Reference: https://hudi.apache.org/tech-specs-1point0/ (timeline layout) and those of version 6: an instant is
a file per state, `<time>.<action>.requested`, `<time>.<action>.inflight` and `<time>[_<time>].<action>`.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from lakehouse.census.files import DamagedError
from lakehouse.timeline.commits import MOST_COMMITS, Commit, Open, Seen
from lakehouse.timeline.source import Table
from lakehouse.timeline.tree import Entry, Tree

_FOLDERS = ".hoodie/timeline", ".hoodie"
_INSTANT = re.compile(r"(\d{14,17})(?:_\d{14,17})?\.([a-z]+)(?:\.(requested|inflight))?")
# The first state of a commit has no action in its name in old versions.
_OLD_INFLIGHT = re.compile(r"(\d{14,17})\.inflight")
_SYNCHRONIZED = "last_commit_time_sync"


def look(table: Table, tree: Tree, state: str) -> Seen:
    """Return the commits since the last look, and those that have begun; DamagedError, UnavailableError."""
    files = next((entries for name in _FOLDERS if (entries := _names(table, tree, name))), None)
    if files is None:
        raise DamagedError(f"{table.location}/.hoodie has no instant")
    previous = set(json.loads(state)) if state else set[str]()
    completed: dict[str, tuple[str, Entry]] = {}
    open_ones: dict[str, Open] = {}
    for entry in sorted(files, key=lambda entry: entry.name):
        time, action, reached = _parts(entry.name)
        if reached == "completed":
            completed[time] = action, entry
        elif time not in open_ones or reached == "inflight":
            open_ones[time] = Open(int(time), reached, action, entry.modified)
    new = [time for time in sorted(completed) if time not in previous][-MOST_COMMITS:]
    newest = max(completed, default="")
    synchronized = table.parameters.get(_SYNCHRONIZED, "")
    behind = [time for time in completed if time > synchronized] if synchronized else []
    return Seen(
        json.dumps(sorted(completed)[-MOST_COMMITS:]),
        [_commit(time, *completed[time]) for time in new],
        [instant for time, instant in sorted(open_ones.items()) if time not in completed],
        lag=f"the metastore has {synchronized}, {len(behind)} before {newest}" if behind else "",
    )


def _names(table: Table, tree: Tree, folder: str) -> list[Entry]:
    entries = tree.names(f"{table.location}/{folder}")
    return [entry for entry in entries if not entry.folder and _is_instant(entry.name)]


def _is_instant(name: str) -> bool:
    return bool(_INSTANT.fullmatch(name) or _OLD_INFLIGHT.fullmatch(name))


def _parts(name: str) -> tuple[str, str, str]:
    """Return the time, the action and the state of a file's name."""
    if match := _OLD_INFLIGHT.fullmatch(name):
        return match[1], "commit", "inflight"
    time, action, *reached = name.split(".")
    return time.partition("_")[0], action, reached[0] if reached else "completed"


def _commit(time: str, action: str, entry: Entry) -> Commit:
    start = datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return Commit(time, action, max(0, int(start.timestamp() * 1000)), entry.owner, "hudi")
