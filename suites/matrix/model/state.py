"""The expected rows of tables after a sequence of operations, computed without an engine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suites.matrix.cross.data_types import DAY, DOUBLE, INSTANT, INT, LOCAL, TEXT, DataType
from suites.testbed.formats import DELTA, HIVE_ORC, HIVE_PARQUET, ICEBERG, Format

# Numbers with a fraction, days and moments are text, as SQL casts it: files of YAML keep them as they are.
Value = int | str | None
Values = tuple[Value, ...]

KINDS: Mapping[str, DataType] = {kind.name: kind for kind in (INT, TEXT, DOUBLE, DAY, LOCAL, INSTANT)}
FORMATS = (ICEBERG, DELTA, HIVE_PARQUET, HIVE_ORC)
HIVE = (HIVE_PARQUET, HIVE_ORC)
# Each table has this column, first, with a number of its own for each row.
KEY = "id"
NAN = "NaN"

EQUAL, DIFFERENT, NULL, NOT_NULL, IS_NAN = "=", "!=", "is null", "is not null", "is nan"


@dataclass(frozen=True)
class Column:
    """A column by its name and type."""

    name: str
    kind: DataType


@dataclass(frozen=True)
class Condition:
    """A condition on one column; `operator` is one of the constants above."""

    column: str
    operator: str
    value: Value = None

    def holds(self, value: Value) -> bool:
        """Tell whether the condition is TRUE for a value, as SQL has it: of NULL it is not."""
        if self.operator == NULL:
            return value is None
        if value is None:
            return False
        return {
            NOT_NULL: True,
            EQUAL: value == self.value,
            DIFFERENT: value != self.value,
            IS_NAN: value == NAN,
        }[self.operator]


@dataclass(frozen=True)
class Row:
    """The values of a row, in the order of the columns, and the engine that wrote it."""

    values: Values
    writer: str


@dataclass(frozen=True)
class Table:
    """A table of the model.

    `home` is the format whose database it lies in, `maker` the engine that made it. `partitions` are the
    columns by whose values rows lie in folders. `former` are names that columns of the table once had;
    `mapped` says that Delta's column mapping is on. `rows` is by key; `written` says that there once were
    some, and `past` is what the last change of rows has found: a rollback brings it back.
    """

    format: Format
    home: Format
    maker: str
    columns: tuple[Column, ...]
    partitions: tuple[str, ...] = ()
    rows: Mapping[int, Row] = field(default_factory=dict)
    former: frozenset[str] = frozenset()
    mapped: bool = False
    written: bool = False
    past: Mapping[int, Row] | None = None

    @property
    def names(self) -> list[str]:
        """The names of its columns, in order."""
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        """Return a column; KeyError if there is none of that name."""
        return {column.name: column for column in self.columns}[name]

    def values(self, name: str) -> dict[int, Value]:
        """Return a column's values by key."""
        place = self.names.index(name)
        return {key: row.values[place] for key, row in self.rows.items()}

    def keys(self, condition: Condition) -> list[int]:
        """Return the keys of the rows for which a condition is TRUE, in order."""
        return sorted(key for key, value in self.values(condition.column).items() if condition.holds(value))

    def with_rows(self, rows: Iterable[Values], writer: str) -> Table:
        """Return the table with these rows more, in place of those with the same keys."""
        fresh = {int(row[0] or 0): Row(row, writer) for row in rows}
        return replace(self, rows={**self.rows, **fresh}, written=self.written or bool(fresh))


@dataclass(frozen=True)
class Model:
    """All tables of a sequence, by name."""

    tables: Mapping[str, Table] = field(default_factory=dict)

    def having(self, name: str, table: Table) -> Model:
        """Return the model with a table more, or with another one of that name."""
        return Model({**self.tables, name: table})

    def without(self, name: str) -> Model:
        """Return the model without a table."""
        return Model({key: table for key, table in self.tables.items() if key != name})


def spell(value: Any, kind: DataType) -> Value:
    """Return an engine's value as the model spells it; AssertionError for another type."""
    if value is None:
        return None
    if kind in {LOCAL, INSTANT}:
        assert isinstance(value, dt.datetime), f"{value!r} is no moment"
        assert kind is LOCAL or value.tzinfo, f"{value!r} has no zone"
        # Spark's TIMESTAMP of a Hive table comes with the zone of its session, which is UTC.
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    if kind is DAY:
        assert type(value) is dt.date, f"{value!r} is no day"
        return value.isoformat()
    if kind is DOUBLE:
        assert isinstance(value, float), f"{value!r} is no number with a fraction"
        return NAN if value != value else repr(value)  # noqa: PLR0124 -- the one value that differs from itself
    expected_type = int if kind is INT else str
    assert type(value) is expected_type, f"{value!r} is no {kind.name}"
    return value


def python(value: Value, kind: DataType) -> Any:
    """Return a value of the model as Python's own type, which Arrow takes."""
    if value is None:
        return None
    if kind in {LOCAL, INSTANT}:
        zone = dt.UTC if kind is INSTANT else None
        return dt.datetime.fromisoformat(str(value)).replace(tzinfo=zone)
    if kind is DAY:
        return dt.date.fromisoformat(str(value))
    return float(value) if kind is DOUBLE else value


def spell_row(row: Sequence[Any], columns: Sequence[Column]) -> Values:
    """Return a row of an engine as the model has it."""
    return tuple(spell(value, column.kind) for value, column in zip(row, columns, strict=True))
