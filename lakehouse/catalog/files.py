"""Small files beside a history's objects."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Put a text into a file: after a kill, or without power, the old one is there or this one."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    to_disk(new)
    new.replace(path)


def to_disk(path: Path) -> None:
    """Have on the disk what a file says, or which names a folder has."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
