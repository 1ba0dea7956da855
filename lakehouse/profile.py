"""Which profile a cluster has: what was asked for once holds until something else is asked for.

The inventory reads it from `.state/<cluster>/profile` where the environment says nothing. So a later run
without PROFILE= neither brings engines up that were left out, nor leaves some out that run.
"""

from __future__ import annotations

import os
from pathlib import Path

from lakehouse import inventory, services, state

VARIABLE = "LAKEHOUSE_PROFILE"
CORE, FULL = services.CORE, services.FULL


def of(path: str) -> str:
    """Return the profile of an inventory: what is asked for now, else what was, else what its files say."""
    return str(inventory.load(path).hosts[0].variables.get("lakehouse_profile", FULL))


def remember(path: str, profile: str | None = None) -> str | None:
    """Keep the profile that is asked for; return a line for the person if an earlier one goes on or ends."""
    kept, asked = _file(path), profile or os.environ.get(VARIABLE)
    before = kept.read_text(encoding="utf-8").strip() if kept.exists() else None
    if not asked:
        return f"profile {before}, as before; PROFILE={_other(before)} changes it" if before else None
    if asked == before or (before is None and asked == FULL):
        return None
    kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept.touch(mode=0o600)
    kept.write_text(f"{asked}\n", encoding="utf-8")
    return f"profile {asked} instead of {before or FULL}, from now on"


def _other(profile: str) -> str:
    return FULL if profile == CORE else CORE


def _file(path: str) -> Path:
    found = inventory.load(path)
    return state.folder(found.path, str(found.hosts[0].variables["lakehouse_cluster"])) / "profile"
