"""Replay a sequence, and compare the rows of each reader with the model after each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from suites.matrix.model.limits import Limits, reads_otherwise
from suites.matrix.model.state import Condition, Model, Table, Values
from suites.matrix.model.steps import (
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
        """Return the keys of the rows that match a condition in a reader, in any order."""

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
    """Replay a sequence; return the first divergence that no limit explains, or None."""
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
        if divergence := _compare(place, step, {name: model.tables[name] for name in names}, world, limits):
            return divergence
    return None


def differences(reader: str, table: Table, rows: Iterable[Values]) -> list[str]:
    """Return how a reader's rows differ from those of the table, except in values with a known difference."""
    expected, actual = Counter(row.values for row in table.rows.values()), Counter(rows)
    missing, extra = list((expected - actual).elements()), list((actual - expected).elements())
    for row in list(missing):
        for candidate in extra:
            if _is_read_otherwise(reader, table, row, candidate):
                missing.remove(row)
                extra.remove(candidate)
                break
    return [f"lacks {row}" for row in missing] + [f"has {row}" for row in extra]


def _is_read_otherwise(reader: str, table: Table, row: Values, candidate: Values) -> bool:
    model_row = table.rows[int(row[0] or 0)]
    return row[0] == candidate[0] and all(
        value == actual or reads_otherwise(reader, table, model_row, name, value)
        for name, value, actual in zip(table.names, row, candidate, strict=True)
    )


def _compare(
    place: int, step: Step, tables: Mapping[str, Table], world: World, limits: Limits
) -> Divergence | None:
    """Query all readers concurrently, each for one table after another."""
    all_readers = sorted({reader for table in tables.values() for reader in readers(table.format)})

    def ask(reader: str) -> Divergence | None:
        for name, table in tables.items():
            if reader in readers(table.format) and (difference := _wrong(reader, name, table, step, world)):
                kind, detail = difference
                refusal = detail if kind == REFUSED else ""
                if not limits.explains(reader, table, refusal) and not world.predicts(reader, name, table):
                    return Divergence(place, step, reader, name, kind, detail[:_LONGEST])
        return None

    if not all_readers:
        return None
    with ThreadPoolExecutor(len(all_readers)) as pool:
        return next((divergence for divergence in pool.map(ask, all_readers) if divergence), None)


def _wrong(reader: str, name: str, table: Table, step: Step, world: World) -> tuple[str, str] | None:
    """Return how a reader differs from the model, as the kind of divergence and its detail."""
    try:
        if step.action == FIND:
            assert step.condition
            keys = world.found(reader, name, table, step.condition)
            detail = _wrongly_found(reader, table, step.condition, keys)
            return (FOUND, detail) if detail else None
        if step.action in CHANGES_COLUMNS:
            columns = world.columns(reader, name, table)
            if columns != table.names:
                return COLUMNS, f"{columns}, not {table.names}"
        rows = differences(reader, table, world.rows(reader, name, table))
        return (ROWS, "; ".join(rows)) if rows else None
    except RefusalError as error:
        return REFUSED, " ".join(str(error).split())


def _wrongly_found(reader: str, table: Table, condition: Condition, keys: list[int]) -> str:
    """Return how the matching rows differ from the model; empty if they do not."""
    values = table.values(condition.column)
    expected = Counter(table.keys(condition))
    actual = Counter(keys)
    wrong_keys = {
        key
        for key in (expected - actual) | (actual - expected)
        if key not in values
        or not reads_otherwise(reader, table, table.rows[key], condition.column, values[key])
    }
    return f"{sorted(keys)}, not {sorted(expected)}" if wrong_keys else ""
