"""Small files beside a history's objects."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Write a file atomically: after a kill or a power failure it has the old content or the new."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    to_disk(new)
    new.replace(path)


def to_disk(path: Path) -> None:
    """Sync a file or a folder to disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
