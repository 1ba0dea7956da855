"""The history of a stack's catalog: a repository on this computer, which the container `past` reads."""

from __future__ import annotations

import stat
from contextlib import closing
from pathlib import Path

from lakehouse.catalog.store import Store
from lakehouse.local.compose.dotenv import Settings

# As compose.yaml mounts it, from the folder of the stack's state.
STORE = "catalog.git"
SERVICE = "past"


def place(settings: Settings) -> Path:
    """Return where the repository is."""
    return settings.state / STORE


def made(settings: Settings) -> None:
    """Ensure that there is a repository, for a container that is to read it."""
    with closing(Store.made(place(settings))):
        readable(settings)


def readable(settings: Settings) -> None:
    """Let the container's user read the repository; the folder above it is its owner's alone.

    Only root can give files to that user.
    """
    settings.state.chmod(stat.S_IRWXU)
    top = place(settings)
    for path in (top, *top.rglob("*")):
        path.chmod(stat.S_IMODE(path.stat().st_mode) | (0o555 if path.is_dir() else 0o444))
