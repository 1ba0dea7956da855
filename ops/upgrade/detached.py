"""Work of a host that must come to its end, whatever becomes of who asked for it."""

from __future__ import annotations

from ops.hosts import as_unit

_UNIT = "lakehouse-upgrade"


def detached(script: str) -> str:
    """Return what has systemd run a script as root, once the one before has ended, and waits for it."""
    waits = f"while systemctl is-active --quiet {_UNIT}; do sleep 0.5; done"
    return f"{waits}; {as_unit(_UNIT, script)}"
