"""Where a control machine keeps what belongs to one cluster: keys, secrets, the profile, runs."""

from __future__ import annotations

from pathlib import Path


def folder(inventory: Path, cluster: str) -> Path:
    """Return the folder that the inventories themselves name, relative to them: `.state/<cluster>`."""
    source = inventory.resolve()
    parent = source if source.is_dir() else source.parent
    return (parent / ".." / ".." / ".state" / cluster).resolve()
