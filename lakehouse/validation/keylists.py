"""Names that a component accepts: `keys/<component>.txt`, written by programs of `lakehouse.dev`.

A line in brackets begins a section; the others hold words, separated by blanks. A comment begins with #.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("keys")
VERSION, KEYS = "version", "keys"


def path(component: str) -> Path:
    """Return where the list of a component lies."""
    return FOLDER / f"{component}.txt"


def parse(text: str) -> dict[str, tuple[str, ...]]:
    """Return the words of each section."""
    sections: dict[str, tuple[str, ...]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line[1:-1]
            sections[section] = ()
        elif not line.startswith("#"):
            sections[section] += tuple(line.split())
    return sections


@cache
def read(component: str) -> Mapping[str, tuple[str, ...]]:
    """Return the words of each section of a component's list."""
    return parse(path(component).read_text(encoding="utf-8"))


def version(component: str) -> str:
    """Return the version that a component's list was made from."""
    [number] = read(component)[VERSION]
    return number
