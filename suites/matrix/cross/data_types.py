"""Types and values that every engine must keep: declared once, as SQL of each dialect and as Arrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class DataType:
    """A type: `name` is its key in the tables of the dialects; nested types hold others."""

    name: str
    precision: int = 0
    scale: int = 0
    parts: tuple[tuple[str, DataType], ...] = ()

    def part(self, index: int) -> DataType:
        """Return the type of a part: of elements, of keys and values, or of a field."""
        return self.parts[index][1]


BOOL, INT, BIG, SINGLE, DOUBLE = map(DataType, ("bool", "int", "big", "single", "double"))
DAY, INSTANT, LOCAL, TEXT, RAW = map(DataType, ("day", "instant", "local", "text", "raw"))


def decimal(precision: int, scale: int) -> DataType:
    """Exact numbers."""
    return DataType("decimal", precision, scale)


def listing(element: DataType) -> DataType:
    """A list."""
    return DataType("list", parts=(("element", element),))


def mapping(key: DataType, value: DataType) -> DataType:
    """A map."""
    return DataType("map", parts=(("key", key), ("value", value)))


def record(**fields: DataType) -> DataType:
    """A row inside of a row."""
    return DataType("struct", parts=tuple(fields.items()))


UTC = dt.UTC
COLUMNS: Mapping[str, DataType] = {
    "id": INT,
    "flag": BOOL,
    "small": INT,
    "big": BIG,
    "single": SINGLE,
    "wide_float": DOUBLE,
    "price": decimal(10, 2),
    "wide": decimal(38, 18),
    "birthday": DAY,
    "moment": INSTANT,
    "local_time": LOCAL,
    "words": TEXT,
    "packet": RAW,
    "numbers": listing(INT),
    "prices": mapping(TEXT, decimal(5, 1)),
    "nested": record(id=INT, parts=listing(record(name=TEXT, tags=mapping(TEXT, TEXT)))),
}

# Limits, microseconds, four-byte letters, empty and null at every level, and a row of nothing.
ROWS: list[tuple[Any, ...]] = [
    (
        1, True, -(2**31), 2**63 - 1, 1.5, 2.2250738585072014e-308,
        Decimal("-12345678.90"), Decimal("12345678901234567890.123456789012345678"),
        dt.date(1969, 12, 31), dt.datetime(2024, 2, 29, 0, 0, 0, 1, UTC), dt.datetime(2024, 3, 31, 2, 30),
        "žluť '𝄞' 日本語 🏞️\n", b"\x00\xff\x10", [1, None, 3], {"a": Decimal("1.5")},
        {"id": 7, "parts": [{"name": "p", "tags": {"k": "ü𝄞"}}]},
    ),
    (
        2, False, 2**31 - 1, -(2**63), -0.25, 1.7976931348623157e308,
        Decimal("99999999.99"), Decimal("-0.000000000000000001"),
        dt.date(9999, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        "", b"", [None], {"none": None}, {"id": None, "parts": [None]},
    ),
    (3, *[None] * (len(COLUMNS) - 1)),
]  # fmt: skip
