"""Carry out a sequence step by step, and compare what each reader returns with the model after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from matrix.model.limits import Limits, reads_otherwise
from matrix.model.state import Condition, Model, Table, Values
from matrix.model.steps import (
    CHANGES_COLUMNS,
    FIND,
    REMOVES_FILES,
    RENAME,
    Sequence,
    Step,
    readers,
    states,
)

ROWS, COLUMNS, FOUND, REFUSED = "rows", "columns", "found", "refused"
_LONGEST = 400


class RefusalError(Exception):
    """An engine did not do what it was asked; the text is its own."""


class World(Protocol):
    """Where a sequence is carried out. Each method raises RefusalError with the engine's words."""

    def execute(self, step: Step, model: Model, /) -> None:
        """Carry out a step; `model` is the one before it."""

    def rows(self, reader: str, name: str, table: Table, /) -> list[Values]:
        """Return a table's rows as a reader sees them, in no order."""

    def columns(self, reader: str, name: str, table: Table, /) -> list[str]:
        """Return the names of a table's columns, in order, as a reader sees them."""

    def found(self, reader: str, name: str, table: Table, condition: Condition, /) -> list[int]:
        """Return the keys of the rows that a reader finds by a condition, in no order."""

    def predicts(self, reader: str, name: str, table: Table, /) -> bool:
        """Tell whether `lakehouse risky-tables` names the table as one that a reader gets wrong."""


@dataclass(frozen=True)
class Divergence:
    """What is not as the model has it, after the step of a number (the first is 1); `kind` is one of above.

    `engine` is the reader, or who refused the step.
    """

    place: int
    step: Step
    engine: str
    table: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return (
            f"step {self.place} ({self.step.action} by {self.step.engine or 'all'}): "
            f"{self.engine}, table {self.table}, {self.kind}: {self.detail}"
        )


def replay(sequence: Sequence, world: World, limits: Limits) -> Divergence | None:
    """Carry out a sequence; return the first divergence that no limit explains, or None."""
    models = states(sequence)
    for place, step in enumerate(sequence, 1):
        try:
            if step.action != FIND:
                world.execute(step, models[place - 1])
        except RefusalError as error:
            return Divergence(place, step, step.engine, step.table, REFUSED, str(error)[:_LONGEST])
        model = models[place]
        name = step.to if step.action == RENAME else step.table
        names = sorted(model.tables) if step.action in REMOVES_FILES else [name]
        if found := _compare(place, step, {name: model.tables[name] for name in names}, world, limits):
            return found
    return None


def differences(reader: str, table: Table, rows: Iterable[Values]) -> list[str]:
    """Return in what a reader's rows are not those of the table, but for values that it reads otherwise."""
    expected, told = Counter(row.values for row in table.rows.values()), Counter(rows)
    missing, more = list((expected - told).elements()), list((told - expected).elements())
    for row in list(missing):
        for other in more:
            if _is_read_otherwise(reader, table, row, other):
                missing.remove(row)
                more.remove(other)
                break
    return [f"lacks {row}" for row in missing] + [f"has {row}" for row in more]


def _is_read_otherwise(reader: str, table: Table, row: Values, other: Values) -> bool:
    mine = table.rows[int(row[0] or 0)]
    return row[0] == other[0] and all(
        value == told or reads_otherwise(reader, table, mine, name, value)
        for name, value, told in zip(table.names, row, other, strict=True)
    )


def _compare(
    place: int, step: Step, tables: Mapping[str, Table], world: World, limits: Limits
) -> Divergence | None:
    """Ask all readers at once, each for one table after another."""
    asked = sorted({reader for table in tables.values() for reader in readers(table.format)})

    def ask(reader: str) -> Divergence | None:
        for name, table in tables.items():
            if reader in readers(table.format) and (wrong := _wrong(reader, name, table, step, world)):
                kind, detail = wrong
                refusal = detail if kind == REFUSED else ""
                if not limits.explains(reader, table, refusal) and not world.predicts(reader, name, table):
                    return Divergence(place, step, reader, name, kind, detail[:_LONGEST])
        return None

    if not asked:
        return None
    with ThreadPoolExecutor(len(asked)) as pool:
        return next((found for found in pool.map(ask, asked) if found), None)


def _wrong(reader: str, name: str, table: Table, step: Step, world: World) -> tuple[str, str] | None:
    """Return what a reader answers otherwise than the model, as the kind of divergence and its detail."""
    try:
        if step.action == FIND:
            assert step.condition
            keys = world.found(reader, name, table, step.condition)
            wrong = _wrongly_found(reader, table, step.condition, keys)
            return (FOUND, wrong) if wrong else None
        if step.action in CHANGES_COLUMNS:
            columns = world.columns(reader, name, table)
            if columns != table.names:
                return COLUMNS, f"{columns}, not {table.names}"
        rows = differences(reader, table, world.rows(reader, name, table))
        return (ROWS, "; ".join(rows)) if rows else None
    except RefusalError as error:
        return REFUSED, " ".join(str(error).split())


def _wrongly_found(reader: str, table: Table, condition: Condition, keys: list[int]) -> str:
    """Return what is wrong with the rows that were found; empty if nothing is."""
    values = table.values(condition.column)
    expected = Counter(table.keys(condition))
    told = Counter(keys)
    wrong = {
        key
        for key in (expected - told) | (told - expected)
        if key not in values
        or not reads_otherwise(reader, table, table.rows[key], condition.column, values[key])
    }
    return f"{sorted(keys)}, not {sorted(expected)}" if wrong else ""
