"""systemd's properties of a unit, and the action that brings it into the desired state."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

_CONNECT_SECONDS = 5.0

# Times that say microseconds and no time zone of the host's.
_SHOWN = [
    "show",
    "--timestamp=us+utc",
    "--property=LoadState,ActiveState,UnitFileState,NeedDaemonReload,ActiveEnterTimestamp,ExecMainStartTimestamp,"
    "FragmentPath,DropInPaths",
]


def question(unit: str) -> list[str]:
    """Return arguments of `systemctl` whose answer `properties` reads: a timer has its service beside it."""
    return [*_SHOWN, unit, *([unit.removesuffix(".timer") + ".service"] if unit.endswith(".timer") else [])]


def properties(lines: Iterable[str]) -> dict[str, str]:
    """Return the properties of the first unit that systemctl prints, one per line.

    A line without text ends a unit. The first one needs a reload of systemd where any of them does.
    """
    printed = list(lines)
    first = dict(line.split("=", 1) for line in takewhile(bool, printed))
    return first | ({"NeedDaemonReload": "yes"} if "NeedDaemonReload=yes" in printed else {})


def started_at(timestamp: str) -> float:
    """Seconds since the epoch of systemd's ``Sat 2026-01-31 12:00:00.123456 UTC``; 0 where it never ran."""
    if not timestamp:
        return 0.0
    parsed = datetime.strptime(timestamp, "%a %Y-%m-%d %H:%M:%S.%f UTC")
    return parsed.replace(tzinfo=UTC).timestamp()


def is_older(state: dict[str, str], changed: float) -> bool:
    """Whether the main process started before ``changed``, in seconds since the epoch."""
    # A timer has no process.
    return changed > started_at(state.get("ExecMainStartTimestamp", state["ActiveEnterTimestamp"]))


def needed(state: dict[str, str], *, enabled: bool, stale: bool) -> str:
    """Return the action that brings the unit into the desired state; a stale one has not read its files."""
    active = state["ActiveState"] in ("active", "activating", "reloading")
    if not enabled:
        return "stopped" if active else "none"
    if not active:
        return "started"
    return "restarted" if stale else "none"


def is_switched(state: dict[str, str], enabled: bool) -> bool:
    """Whether the unit is enabled or disabled as desired.

    Debian's template units are enabled by their generator and cannot be switched.
    """
    is_enabled = state["UnitFileState"] in ("enabled", "enabled-runtime")
    return is_enabled == enabled or state["UnitFileState"] not in ("enabled", "disabled")


def is_as_desired(state: dict[str, str], *, enabled: bool, stale: bool) -> bool:
    """Whether systemd has the unit in the desired state, whether or not it is ready."""
    return (
        state["LoadState"] == "loaded"
        and state["NeedDaemonReload"] == "no"
        and is_switched(state, enabled)
        and needed(state, enabled=enabled, stale=stale) == "none"
    )


def changed_at(path: str) -> float:
    """When the inode behind the path, or a link on the way to it, last changed; 0 where nothing is there."""
    try:
        return max(Path(path).lstat().st_ctime, Path(path).stat().st_ctime)
    except FileNotFoundError:
        return 0.0


def is_stale(state: dict[str, str], files: Sequence[str], pending: Sequence[str] = ()) -> bool:
    """Whether a file changed after the main process started, or is among those that a run would change."""
    watched = [path for path in (*files, state["FragmentPath"], *state["DropInPaths"].split()) if path]
    changed = max(map(changed_at, watched), default=0.0)
    return is_older(state, changed) or not set(watched).isdisjoint(pending)


def is_deaf(state: dict[str, str], sockets: Iterable[dict[str, Any]]) -> bool:
    """Whether the unit is active and one of its sockets refuses connections."""
    return state["ActiveState"] == "active" and not all(map(_is_open, sockets))


def _is_open(place: dict[str, Any]) -> bool:
    """Whether a server takes a connection there."""
    try:
        socket.create_connection((place["host"], int(place["port"])), _CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
