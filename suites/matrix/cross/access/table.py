"""The declarations of `access.yml`: the permitted acts of each party by interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakehouse.errors import LakehouseError
from suites.matrix.cross.access import INTERFACES
from suites.matrix.cross.access.acts import ANONYMOUS, MEMBER, OUTSIDER, READER, Act

PATH = Path(__file__).with_name("access.yml")
COLUMNS = (MEMBER, READER, OUTSIDER, ANONYMOUS)


@dataclass(frozen=True)
class Row:
    """An act through an interface, and who may do it; `note` is a word on it."""

    interface: str
    name: str
    may: frozenset[str]
    note: str = ""

    @property
    def act(self) -> Act:
        """What is tried."""
        return INTERFACES[self.interface][self.name]

    def __str__(self) -> str:
        return f"{self.interface}-{self.name}"


def load(path: Path = PATH) -> tuple[Row, ...]:
    """Return every row, in the order of the file.

    Raises LakehouseError with one line that names the place when a declaration is none, lacks its act, or
    is missing.
    """
    rows = tuple(_rows(yaml.safe_load(path.read_text(encoding="utf-8"))))
    declared = {(row.interface, row.name) for row in rows}
    for interface, acts in INTERFACES.items():
        for name in acts:
            if (interface, name) not in declared:
                raise _error(interface, f"lacks {name!r}")
    return rows


def _rows(data: dict[str, dict[str, Any]]) -> Iterator[Row]:
    for interface, acts in data.items():
        for name, declared in acts.items():
            if name not in INTERFACES.get(interface, {}):
                raise _error(interface, f"has {name!r}, which no module knows how to try")
            may = declared["may"] if isinstance(declared, dict) else declared
            if not isinstance(may, list) or not set(may) <= set(COLUMNS):
                raise _error(interface, f"{name!r} is {declared!r}, expected a list of {', '.join(COLUMNS)}")
            note = str(declared.get("note", "")) if isinstance(declared, dict) else ""
            yield Row(interface, name, frozenset(may), note)


def markdown() -> str:
    """Return the table of the page: acts by parties."""
    lines = [f"| Through | What | {' | '.join(COLUMNS)} |", "|---|---|" + "---|" * len(COLUMNS)]
    last_interface = ""
    for row in load():
        fields = ["✓" if column in row.may else "✕" for column in COLUMNS]
        if not row.act.anonymous:
            fields[COLUMNS.index(ANONYMOUS)] = "n/a"
        act = f"{row.name} ({row.note})" if row.note else row.name
        lines.append(
            f"| {row.interface if row.interface != last_interface else ''} | {act} | {' | '.join(fields)} |"
        )
        last_interface = row.interface
    return "\n".join(lines) + "\n"


def _error(where: str, problem: str) -> LakehouseError:
    return LakehouseError(f"{PATH.name}: {where} {problem}", f"edit suites/matrix/cross/access/{PATH.name}")
