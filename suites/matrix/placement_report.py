"""The placements of two suites in one file: `tables.json` of the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from suites.testbed.placement import Placement

_ALL = "tables.json"
_MINE = "matrix-tables.json"


def add(folder: Path, placements: Sequence[Placement]) -> None:
    """Add the matrix's placements to those of the smoke suite, replacing those of an earlier run."""
    replaced_tables = {str(entry["table"]) for entry in _read(folder / _MINE)}
    kept_entries = [entry for entry in _read(folder / _ALL) if entry["table"] not in replaced_tables]
    matrix_entries: list[dict[str, object]] = [asdict(placement) for placement in placements]
    folder.mkdir(parents=True, exist_ok=True)
    for name, entries in ((_MINE, matrix_entries), (_ALL, [*kept_entries, *matrix_entries])):
        (folder / name).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return entries
