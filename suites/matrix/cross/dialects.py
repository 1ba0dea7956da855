"""The same types and values in the SQL of each engine, and as Arrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from suites.matrix.cross.data_types import COLUMNS, DataType


@dataclass(frozen=True)
class Dialect:
    """How an engine spells types and values. `types` are templates over the parts of a type."""

    name: str
    types: Mapping[str, str]
    field: str
    text: Callable[[str], str]
    raw: str
    listing: str
    mapping: Callable[[Sequence[str], Sequence[str]], str]
    record: Callable[[Sequence[str], Sequence[str]], str]
    # What follows an instant: nothing where only the session, which is in UTC, can say the zone.
    zone: str = " UTC"

    def type(self, kind: DataType) -> str:
        """Spell a type."""
        parts = [self.type(part) for _, part in kind.parts]
        fields = ", ".join(self.field.format(name=name, type=self.type(part)) for name, part in kind.parts)
        return self.types[kind.name].format(*parts, fields=fields, p=kind.precision, s=kind.scale)

    def columns(self, kinds: Mapping[str, DataType] = COLUMNS) -> str:
        """Spell the columns of CREATE TABLE."""
        return ", ".join(f"{name} {self.type(kind)}" for name, kind in kinds.items())

    def literal(self, value: Any, kind: DataType) -> str:
        """Spell a value; each is cast, so that no engine guesses."""
        return f"CAST({self._bare(value, kind)} AS {self.type(kind)})"

    def rows(self, values: Sequence[Sequence[Any]], kinds: Mapping[str, DataType] = COLUMNS) -> str:
        """Spell the rows after VALUES."""
        return ", ".join(f"({', '.join(map(self.literal, row, kinds.values()))})" for row in values)

    def _bare(self, value: Any, kind: DataType) -> str:
        if value is None:
            return "NULL"
        if kind.name == "list":
            return self.listing.format(", ".join(self.literal(element, kind.part(0)) for element in value))
        if kind.name == "map":
            return self.mapping(
                [self.literal(key, kind.part(0)) for key in value],
                [self.literal(element, kind.part(1)) for element in value.values()],
            )
        if kind.name == "struct":
            return self.record(
                [name for name, _ in kind.parts],
                [self.literal(value[name], part) for name, part in kind.parts],
            )
        if kind.name == "raw":
            return self.raw.format(value.hex())
        return self.text(_plain(value, self.zone))


def _plain(value: Any, zone: str) -> str:
    """Spell a value without a type's help: engines cast text to numbers, dates and times alike."""
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f") + (zone if value.tzinfo else "")
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _alternating(keys: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{key}, {value}" for key, value in zip(keys, values, strict=True))


_COMMON = {
    "bool": "BOOLEAN",
    "int": "INT",
    "big": "BIGINT",
    "single": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL({p}, {s})",
    "day": "DATE",
}

SPARK = Dialect(
    name="spark",
    types=_COMMON | {
        "instant": "TIMESTAMP", "local": "TIMESTAMP_NTZ", "text": "STRING", "raw": "BINARY",
        "list": "ARRAY<{}>", "map": "MAP<{}, {}>", "struct": "STRUCT<{fields}>",
    },
    field="{name}: {type}",
    text=_escaped,
    raw="X'{}'",
    listing="array({})",
    mapping=lambda keys, values: f"map({_alternating(keys, values)})",
    record=lambda names, values: f"named_struct({_alternating([repr(name) for name in names], values)})",
)  # fmt: skip

TRINO = Dialect(
    name="trino",
    types=_COMMON | {
        "single": "REAL", "instant": "TIMESTAMP(6) WITH TIME ZONE", "local": "TIMESTAMP(6)",
        "text": "VARCHAR", "raw": "VARBINARY",
        "list": "ARRAY({})", "map": "MAP({}, {})", "struct": "ROW({fields})",
    },
    field="{name} {type}",
    text=_doubled,
    raw="X'{}'",
    listing="ARRAY[{}]",
    mapping=lambda keys, values: f"MAP(ARRAY[{', '.join(keys)}], ARRAY[{', '.join(values)}])",
    record=lambda _, values: f"ROW({', '.join(values)})",
)  # fmt: skip

FLINK = Dialect(
    name="flink",
    types=_COMMON | {
        "instant": "TIMESTAMP_LTZ(6)", "local": "TIMESTAMP(6)", "text": "STRING", "raw": "BYTES",
        "list": "ARRAY<{}>", "map": "MAP<{}, {}>", "struct": "ROW<{fields}>",
    },
    field="{name} {type}",
    text=_doubled,
    raw="X'{}'",
    listing="ARRAY[{}]",
    mapping=lambda keys, values: f"MAP[{_alternating(keys, values)}]",
    record=lambda _, values: f"ROW({', '.join(values)})",
    zone="",
)  # fmt: skip

DIALECTS = {dialect.name: dialect for dialect in (SPARK, TRINO, FLINK)}

_ARROW: Mapping[str, Callable[[], pa.DataType]] = {
    "bool": pa.bool_,
    "int": pa.int32,
    "big": pa.int64,
    "single": pa.float32,
    "double": pa.float64,
    "day": pa.date32,
    "instant": lambda: pa.timestamp("us", "UTC"),
    "local": lambda: pa.timestamp("us"),
    "text": pa.string,
    "raw": pa.binary,
}


def arrow_type(kind: DataType) -> pa.DataType:
    """Return a type as Arrow has it."""
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.name == "list":
        return pa.list_(arrow_type(kind.part(0)))
    if kind.name == "map":
        return pa.map_(arrow_type(kind.part(0)), arrow_type(kind.part(1)))
    if kind.name == "struct":
        return pa.struct({name: arrow_type(part) for name, part in kind.parts})
    return _ARROW[kind.name]()


def arrow(rows: Sequence[Sequence[Any]], kinds: Mapping[str, DataType] = COLUMNS) -> pa.Table:
    """Return rows as an Arrow table."""
    columns = zip(*rows, strict=True)
    return pa.table({
        name: pa.array(column, arrow_type(kind))
        for (name, kind), column in zip(kinds.items(), columns, strict=True)
    })  # fmt: skip
