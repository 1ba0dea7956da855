"""Settings that a component accepts and that break a promise of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lakehouse import yamlfile
from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation import trino
from lakehouse.validation.finding import Finding, Level

FILE = Path(__file__).with_name("promises.yml")
CATALOGS, VARIABLES = "catalogs", "variables"
# Of a value in a line; no user writes a longer one by hand.
_SHOWN = 120


@dataclass(frozen=True)
class Promise:
    """A setting of promises.yml, which explains the fields; `of` are variables, `connectors` Trino's."""

    of: tuple[str, ...]
    connectors: tuple[str, ...]
    key: str
    promise: str
    page: str
    only: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    unset: str = "undone"
    datanodes: int = 0

    def is_undone_by(self, value: object) -> bool:
        """Whether a value of the setting undoes the promise; None removes the setting from its file."""
        if value is None:
            return bool(self.only or self.needs) and self.unset == "undone"
        if self.needs:
            return not set(self.needs) <= set(_words(value))
        spelling = _spelt(value).lower()
        listed = [option.lower() for option in self.never or self.only]
        return (spelling in listed) is bool(self.never)

    @property
    def expected(self) -> str:
        """What the value has to be, as a line says it."""
        if self.needs:
            return f"{', '.join(self.needs)} in it"
        return f"not {' or '.join(self.never)}" if self.never else self.only[0] or "no value"


@cache
def promises() -> tuple[Promise, ...]:
    """Return all rows of promises.yml."""
    return tuple(
        Promise(
            of=() if block["of"] == CATALOGS else tuple(block["of"]),
            connectors=tuple(block.get("connectors", ())),
            **{name: _field(value) for name, value in row.items()},
        )
        for block in yamlfile.read(FILE)
        for row in block["settings"]
    )


def _field(value: Any) -> Any:
    """Return a field of a row: the values of a list are spelt as in a file."""
    return tuple(map(_spelt, value)) if isinstance(value, list) else value


def undone(host: Host, inventory: Inventory) -> list[Finding]:
    """Find settings of the inventory that undo a promise; one line for each promise of a setting."""
    datanodes = len(inventory.group("datanodes"))
    return [
        _finding(host, where, row, settings[row.key])
        for where, rows, settings in _written(host)
        for row in rows
        if row.key in settings and datanodes >= row.datanodes and row.is_undone_by(settings[row.key])
    ]


def _written(host: Host) -> Iterator[tuple[str, list[Promise], Mapping[Any, Any]]]:
    """Yield each dict of the inventory with its name, and the rows that apply to it."""
    names = dict.fromkeys(name for row in promises() for name in row.of)
    for name in names:
        settings = host.variables if name == VARIABLES else host.variables.get(name)
        if isinstance(settings, Mapping):
            yield name, [row for row in promises() if name in row.of], settings
    for path, connector, properties in trino.written_catalogs(host):
        yield path, [row for row in promises() if connector in row.connectors], properties


def _finding(host: Host, where: str, row: Promise, value: object) -> Finding:
    has = f"removes {row.key}" if value is None else f"has {row.key}: {_shown(value)}"
    fact = f"{where} {has}, which undoes a promise: {row.promise}"
    if where == VARIABLES:
        fact = f"{row.key} is {_shown(value)}, which undoes a promise: {row.promise}"
    return Finding(
        "settings.promise", host.name, fact, f"remove it, or read docs/{row.page} first", row.expected,
        level=Level.WARNING,
    )  # fmt: skip


def _shown(value: object) -> str:
    text = ",".join(_words(value))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _words(value: object) -> list[str]:
    """Return the parts of a list, or of a text with commas."""
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    return [str(part).strip() for part in parts]


def _spelt(value: object) -> str:
    """Return a value as files have it: a YAML `false` is the word."""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
