"""The profile of a cluster: a run with PROFILE= sets it for the runs after it.

Without that variable the inventory reads it from `.state/<cluster>/profile`, so that a later run neither
starts excluded engines nor excludes running ones.
"""

from __future__ import annotations

import os
from pathlib import Path

from lakehouse.model import inventory, services, state

VARIABLE = "LAKEHOUSE_PROFILE"
CORE, FULL = services.CORE, services.FULL


def of(path: str) -> str:
    """Return the profile of an inventory: of the environment, else recorded, else of its files."""
    return str(inventory.load(path).hosts[0].variables.get("lakehouse_profile", FULL))


def remember(path: str, profile: str | None = None) -> str | None:
    """Record the requested profile; return a line for the user if an earlier one continues or is replaced."""
    file, requested = _file(path), profile or os.environ.get(VARIABLE)
    recorded = file.read_text(encoding="utf-8").strip() if file.exists() else None
    if not requested:
        return f"profile {recorded}, as before; PROFILE={_other(recorded)} changes it" if recorded else None
    if requested == recorded or (recorded is None and requested == FULL):
        return None
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(f"{requested}\n", encoding="utf-8")
    return f"profile {requested} instead of {recorded or FULL}, from now on"


def _other(profile: str) -> str:
    return FULL if profile == CORE else CORE


def _file(path: str) -> Path:
    source = inventory.load(path)
    return state.folder(source.path, str(source.hosts[0].variables["lakehouse_cluster"])) / "profile"
