"""Small files beside a history's objects."""

from __future__ import annotations

from pathlib import Path


def write(path: Path, text: str) -> None:
    """Put a text into a file: whoever reads it, or is left after a kill, has the old one or this one."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
