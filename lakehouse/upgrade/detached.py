"""Run a script on a host to its end, even if the connection or this program ends."""

from __future__ import annotations

from lakehouse.remote.hosts import as_unit

_UNIT = "lakehouse-upgrade"


def detached(script: str) -> str:
    """Return the command that runs a script as a unit of systemd after the previous one, and waits for it."""
    waits = f"while systemctl is-active --quiet {_UNIT}; do sleep 0.5; done"
    return f"{waits}; {as_unit(_UNIT, script)}"
