"""What systemd says of a unit, and what would bring it into the desired state.

Read off text alone: by the module on the host, and on the control machine where the host's shell was asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

# Of `systemctl show`, with times that say microseconds and no time zone of the host's.
SHOWN = [
    "--timestamp=us+utc",
    "--property=LoadState,ActiveState,UnitFileState,NeedDaemonReload,ActiveEnterTimestamp,ExecMainStartTimestamp,"
    "FragmentPath,DropInPaths",
]


def properties(lines: Iterable[str]) -> dict[str, str]:
    """Return the properties that systemctl prints, one per line."""
    return dict(line.split("=", 1) for line in lines if "=" in line)


def started_at(timestamp: str) -> float:
    """Seconds since the epoch of systemd's ``Sat 2026-01-31 12:00:00.123456 UTC``; 0 where it never ran."""
    if not timestamp:
        return 0.0
    parsed = datetime.strptime(timestamp, "%a %Y-%m-%d %H:%M:%S.%f UTC")
    return parsed.replace(tzinfo=UTC).timestamp()


def is_older(known: dict[str, str], changed: float) -> bool:
    """Whether the main process started before ``changed``, in seconds since the epoch."""
    # A timer has no process.
    return changed > started_at(known.get("ExecMainStartTimestamp", known["ActiveEnterTimestamp"]))


def needed(known: dict[str, str], *, enabled: bool, stale: bool) -> str:
    """Return the action that brings the unit into the desired state; a stale one has not read its files."""
    active = known["ActiveState"] in ("active", "activating", "reloading")
    if not enabled:
        return "stopped" if active else "none"
    if not active:
        return "started"
    return "restarted" if stale else "none"


def is_switched(known: dict[str, str], enabled: bool) -> bool:
    """Whether the unit starts at a boot as it should.

    Debian's template units are enabled by their generator and cannot be switched.
    """
    is_enabled = known["UnitFileState"] in ("enabled", "enabled-runtime")
    return is_enabled == enabled or known["UnitFileState"] not in ("enabled", "disabled")


def is_as_desired(known: dict[str, str], *, enabled: bool, stale: bool) -> bool:
    """Whether systemd has nothing to do for the unit; whether it answers is another question."""
    return (
        known["LoadState"] == "loaded"
        and known["NeedDaemonReload"] == "no"
        and is_switched(known, enabled)
        and needed(known, enabled=enabled, stale=stale) == "none"
    )
