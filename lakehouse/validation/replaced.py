"""Variables that two files of one folder of an inventory set: the last counts, and Ansible says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader

from lakehouse.validation.finding import Finding, Level

FOLDERS = ("group_vars", "host_vars")


def replaced(inventory: Path, loader: DataLoader) -> list[Finding]:
    """Find values that a later file of the same group, or host, replaces by others; none is shown.

    A dict is replaced whole, also where the later one has other keys.
    """
    root = inventory if inventory.is_dir() else inventory.parent
    return list(
        chain.from_iterable(_of(root, loader, kind, name) for kind in FOLDERS for name in _names(root / kind))
    )


def _names(folder: Path) -> list[str]:
    return sorted({path.stem for path in folder.iterdir()}) if folder.is_dir() else []


def _of(root: Path, loader: DataLoader, kind: str, name: str) -> Iterator[Finding]:
    """Read the files of a group, or a host, in Ansible's own order."""
    said: dict[str, tuple[str, Any]] = {}
    for file in map(str, loader.find_vars_files(str(root / kind), name)):
        place = str(Path(file).relative_to(root))
        for variable, value in (loader.load_from_file(file) or {}).items():
            before, old = said.get(variable, (place, value))
            if old != value:
                yield _finding(name, variable, place, before, _lost(old, value))
            said[variable] = (place, value)


def _lost(old: object, value: object) -> list[str]:
    """Name the keys of a dict that the later one does not have."""
    both = isinstance(old, Mapping) and isinstance(value, Mapping)
    return [str(key) for key in old if key not in value] if both else []  # type: ignore[attr-defined, operator]


def _finding(name: str, variable: str, place: str, before: str, lost: list[str]) -> Finding:
    more = f" and {len(lost) - 1} more" if lost[1:] else ""
    without = f", without {lost[0]}{more}" if lost else ""
    fact = f"{variable} of {place} replaces that of {before}{without}"
    advice = f"say all of it in {place}, and take it out of {before}"
    return Finding("vars.replaced", name, fact, advice, level=Level.WARNING)
