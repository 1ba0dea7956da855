"""The mark of a host that is away: in maintenance, or no longer of the cluster.

A verb writes it and takes it away. It outlives a boot, and while it is there no playbook starts what a verb
has stopped. A host that is offline cannot be marked: the NameNode's host has a note of it instead.
Standard library only, and Python 3.9: modules read it on the nodes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

# Below lakehouse_config_dir.
FILE = "lakehouse-away.json"
# The same on the NameNode's host: marks by the host, of those that were offline when they left.
NOTES = "lakehouse-left.json"
MAINTENANCE, LEFT = "maintenance", "left"
Mark = dict[str, Any]
_RUN = re.compile(r"[A-Za-z0-9]{1,20}")
# As far as a year has four digits.
_LAST_SECOND = 253402300800
# What is expected of a host of the inventory, by the state of its mark.
EXPECTED = {
    MAINTENANCE: "a host that serves, or that is not among those of the run (--limit)",
    LEFT: "a host that serves; one that left is in no inventory",
}


def written(state: str, run: str, since: float, until: float = 0.0) -> str:
    """Return what the file holds; times are seconds since the epoch, `until` is of a maintenance."""
    mark: Mark = {"state": state, "run": run, "since": int(since)}
    if state == MAINTENANCE:
        mark["until"] = int(until)
    return json.dumps(mark, sort_keys=True) + "\n"


def read(text: str) -> Mark:
    """Return the mark; nothing where there is none. Raises ValueError where it cannot be read."""
    try:
        mark: Any = json.loads(text) if text.strip() else {}
    except RecursionError:
        mark = None
    if not isinstance(mark, dict) or (mark and not _is_mark(mark)):
        raise ValueError("no mark of a host that is away")
    return mark


def _is_mark(mark: Mark) -> bool:
    """Whether a mark has all that is told of it: who looks at one host also looks at the others."""
    times = ["since", *(["until"] if mark.get("state") == MAINTENANCE else [])]
    are_times = all(type(mark.get(key)) is int and 0 <= mark[key] < _LAST_SECOND for key in times)
    run = mark.get("run")
    return (
        mark.get("state") in (MAINTENANCE, LEFT)
        and are_times
        and isinstance(run, str)
        and bool(_RUN.fullmatch(run))
    )


def notes(text: str) -> dict[str, Mark]:
    """Return the marks of offline hosts, by name. Raises ValueError if they cannot be parsed."""
    marks: Any = json.loads(text) if text.strip() else {}
    try:
        return {name: read(json.dumps(mark)) for name, mark in marks.items()}
    except (AttributeError, RecursionError) as error:
        raise ValueError("no marks of hosts") from error


def noted(marks: Mapping[str, Mark]) -> str:
    """Return the content of the file of notes."""
    return json.dumps(marks, sort_keys=True, indent=1) + "\n"


def of(mark: Mark | None, note: Mark | None) -> Mark:
    """Return the mark of a host: its own, None while that is unknown, or else the noted one."""
    if mark or not note:
        return mark or {}
    return note if mark is None else {**note, "back": True}


def told(mark: Mark) -> str:
    """Return the mark as text, such as `in maintenance until 12:30 UTC (run r17)`."""
    text = (
        f"in maintenance until {_clock(mark['until'])}"
        if mark["state"] == MAINTENANCE
        else f"no longer of the cluster since {_clock(mark['since'])}"
    )
    text += ", and answers again" if mark.get("back") else ""
    return f"{text} (run {mark['run']})"


def way_back(mark: Mark, host: str) -> str:
    """Return the verb of `lakehouse`, with its words, that has the host serve again."""
    return f"maintenance {host} --end" if mark["state"] == MAINTENANCE else f"recommission {host}"


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
