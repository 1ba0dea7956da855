"""Variables that two files of a folder of an inventory set: Ansible silently uses the last."""

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
    assignments: dict[str, tuple[str, Any]] = {}
    for file in map(str, loader.find_vars_files(str(root / kind), name)):
        place = str(Path(file).relative_to(root))
        for variable, value in (loader.load_from_file(file) or {}).items():
            previous_file, old = assignments.get(variable, (place, value))
            if old != value:
                yield _finding(name, variable, place, previous_file, _lost(old, value))
            assignments[variable] = (place, value)


def _lost(old: object, value: object) -> list[str]:
    """Return the keys of a dict that the later one lacks."""
    are_dicts = isinstance(old, Mapping) and isinstance(value, Mapping)
    return [str(key) for key in old if key not in value] if are_dicts else []  # type: ignore[attr-defined, operator]


def _finding(name: str, variable: str, place: str, previous_file: str, missing_keys: list[str]) -> Finding:
    remainder = f" and {len(missing_keys) - 1} more" if missing_keys[1:] else ""
    loss = f", without {missing_keys[0]}{remainder}" if missing_keys else ""
    fact = f"{variable} of {place} replaces that of {previous_file}{loss}"
    advice = f"say all of it in {place}, and take it out of {previous_file}"
    return Finding("vars.replaced", name, fact, advice, level=Level.WARNING)
