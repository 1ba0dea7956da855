"""A canonical spelling of values of all clients, so that rows of two engines can be compared."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from suites.matrix.cross.data_types import COLUMNS, DataType

Spelt = list[Any]


def rows(
    unordered_rows: Iterable[Sequence[Any]], kinds: Iterable[DataType] = tuple(COLUMNS.values())
) -> list[Spelt]:
    """Spell rows by the types of their columns, ordered by the first one."""
    kinds = tuple(kinds)
    spelt_rows = [
        [spell(value, kind) for value, kind in zip(row, kinds, strict=True)] for row in unordered_rows
    ]
    return sorted(spelt_rows, key=lambda row: str(row[0]))


def checksum(spelt_rows: list[Spelt]) -> str:
    """Return a checksum of spelt rows."""
    return hashlib.sha256(json.dumps(spelt_rows, ensure_ascii=False).encode()).hexdigest()


def spell(value: Any, kind: DataType) -> Any:  # noqa: C901, PLR0911 (one line a type)
    """Spell a value; AssertionError for another type, so that clients that round are detected."""
    if value is None:
        return None
    if kind.name == "decimal":
        return f"{_exactly(value, Decimal):.{kind.scale}f}"
    if kind.name == "instant":
        moment = _exactly(value, dt.datetime)
        assert moment.tzinfo is not None, f"an instant without a zone: {value!r}"
        return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    if kind.name == "local":
        moment = _exactly(value, dt.datetime)
        assert moment.tzinfo is None, f"a local time with a zone: {value!r}"
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")
    if kind.name == "day":
        return _exactly(value, dt.date).isoformat()
    if kind.name == "time":
        return _exactly(value, dt.time).isoformat("microseconds")
    if kind.name == "raw":
        return bytes(value).hex()
    if kind.name == "list":
        return [spell(element, kind.part(0)) for element in value]
    if kind.name == "map":
        pairs = value.items() if isinstance(value, Mapping) else value
        return sorted([spell(key, kind.part(0)), spell(element, kind.part(1))] for key, element in pairs)
    if kind.name == "struct":
        fields = [value[name] for name, _ in kind.parts] if isinstance(value, Mapping) else list(value)
        return [spell(field, kind.part(index)) for index, field in enumerate(fields)]
    return _PLAIN[kind.name](value)


def _exactly(value: Any, kind: type[Any]) -> Any:
    assert isinstance(value, kind), f"{value!r} is a {type(value).__name__}, expected {kind.__name__}"
    return value


def _number(value: Any) -> str:
    return repr(float(value))


def _whole(value: Any) -> int:
    return int(_exactly(value, int))


def _text(value: Any) -> str:
    return str(_exactly(value, str))


def _truth(value: Any) -> bool:
    return bool(_exactly(value, bool))


_PLAIN: Mapping[str, Any] = {
    "bool": _truth,
    "int": _whole,
    "big": _whole,
    "single": _number,
    "double": _number,
    "text": _text,
}
