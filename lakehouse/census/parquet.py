"""Row groups in the footer of a Parquet file, with the standard library alone.

References: https://parquet.apache.org/docs/file-format/metadata/ (parquet.thrift: FileMetaData, RowGroup,
ColumnMetaData) and the compact protocol of Apache Thrift (doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.census.contents import RowGroup
from plugins.module_utils.lakehouse.counting import counted

MAGIC = b"PAR1"
# The last bytes of a file: the length of its footer, and the magic number.
TAIL_BYTES = 8
MOST_FOOTER_BYTES = 32 << 20
# Values of a footer that are built: numbers, structs and lists. A hostile footer has one per byte.
MOST_VALUES = 4_000_000
_MOST_DEPTH = 32
_VARINT_BITS = 63
_NUMBERS = 1 << 63
# Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_SIZES = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}
_LONG_LIST = 15
_HIGH, _LOW = 4, 0x0F
_SEVEN_BITS, _MORE = 0x7F, 0x80
# Ids of fields. FileMetaData:
_ROWS, _ROW_GROUPS = 3, 4
# RowGroup:
_COLUMNS, _BYTES, _GROUP_ROWS, _OFFSET, _COMPRESSED = 1, 2, 3, 5, 6
# ColumnChunk, ColumnMetaData:
_META_DATA, _COLUMN_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 3, 7, 9, 11


class FooterError(ValueError):
    """The content is no footer of a Parquet file."""


def footer_length(tail: bytes) -> int:
    """Return the length of the footer before the last bytes of a file; FooterError."""
    if len(tail) < TAIL_BYTES or tail[-len(MAGIC) :] != MAGIC:
        raise FooterError("it does not end as a Parquet file")
    length = int(struct.unpack("<I", tail[-TAIL_BYTES : -len(MAGIC)])[0])
    if not 0 < length <= MOST_FOOTER_BYTES:
        raise FooterError(f"its footer has {counted(length, 'byte')}")
    return length


def row_groups(footer: bytes) -> tuple[RowGroup, ...]:
    """Return the row groups of a footer, without its last bytes; FooterError."""
    data = memoryview(footer)
    try:
        metadata, _ = _Reader(data).struct(0, 0, _FILE)
    except (LookupError, struct.error) as error:
        raise FooterError(f"its footer is cut: {type(error).__name__}") from None
    groups = metadata.get(_ROW_GROUPS, [])
    if not isinstance(metadata.get(_ROWS), int) or not isinstance(groups, list):
        raise FooterError("its footer has no number of rows")
    return tuple(groups)


def _row_group(group: Any) -> RowGroup:
    """Return a row group of its fields by id; its compressed size, which is what a reader reads."""
    if not isinstance(group, dict) or not isinstance(columns := group.get(_COLUMNS), list):
        raise FooterError("a row group has no columns")
    chunks = [chunk.get(_META_DATA, {}) for chunk in columns if isinstance(chunk, dict)]
    if not all(isinstance(chunk, dict) for chunk in chunks):
        raise FooterError("a column has no metadata")
    starts = [chunk.get(_DICTIONARY_PAGE) or chunk.get(_DATA_PAGE, 0) for chunk in chunks]
    compressed = group.get(_COMPRESSED) or sum(chunk.get(_COLUMN_COMPRESSED, 0) for chunk in chunks)
    values = (group.get(_OFFSET) or min(starts, default=0), compressed, group.get(_GROUP_ROWS))
    if not all(isinstance(value, int) and 0 <= value < _NUMBERS for value in values):
        raise FooterError("a row group has no numbers")
    return RowGroup(*values)


@dataclass(frozen=True)
class _Fields:
    """The requested fields of a struct by id, with those of the struct in them; every other is skipped.

    `convert` replaces the struct as soon as it is read.
    """

    nested: Mapping[int, _Fields | None]
    convert: Callable[[Any], Any] | None = None


_CHUNK = _Fields({_META_DATA: _Fields(dict.fromkeys((_COLUMN_COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE)))})
_GROUP = _Fields({_COLUMNS: _CHUNK, **dict.fromkeys((_BYTES, _GROUP_ROWS, _OFFSET, _COMPRESSED))}, _row_group)
_FILE = _Fields({_ROWS: None, _ROW_GROUPS: _GROUP})


class _Reader:
    """A reader of Thrift's compact protocol; FooterError, LookupError."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._remaining = MOST_VALUES

    def struct(self, position: int, depth: int, fields: _Fields | None) -> tuple[Any, int]:
        """Return the requested fields of a struct by id, if any, and the position behind it."""
        if depth > _MOST_DEPTH:
            raise FooterError("its footer is nested too deeply")
        data, nested = self._data, fields.nested if fields else {}
        values: dict[int, Any] = {}
        number = 0
        while (header := data[position]) & _LOW != _STOP:
            position += 1
            kind, delta = header & _LOW, header >> _HIGH
            if delta:
                number += delta
            else:
                number, position = _zigzag(data, position)
            if kind in {_TRUE, _FALSE}:
                continue
            if number in nested:
                values[number], position = self._value(kind, position, depth + 1, nested[number])
            else:
                position = self._skip(kind, position, depth + 1)
        if fields is None:
            return None, position + 1
        return (fields.convert(values) if fields.convert else values), position + 1

    def _value(self, kind: int, position: int, depth: int, fields: _Fields | None) -> tuple[Any, int]:
        """Return a number, a struct or a list of them, and the position behind it; None for another value."""
        self._remaining -= 1
        if self._remaining < 0:
            raise FooterError(f"its footer has more than {MOST_VALUES} values")
        if kind in {_I16, _I32, _I64}:
            return _zigzag(self._data, position)
        if fields and kind == _STRUCT:
            return self.struct(position, depth, fields)
        if fields and kind == _LIST:
            return self._list(position, depth, fields)
        return None, self._skip(kind, position, depth)

    def _list(self, position: int, depth: int, fields: _Fields) -> tuple[list[Any], int]:
        count, kind, position = self._header(position)
        if kind != _STRUCT:
            raise FooterError("a list has no structs")
        items = []
        for _ in range(count):
            item, position = self._value(kind, position, depth + 1, fields)
            items.append(item)
        return items, position

    def _header(self, position: int) -> tuple[int, int, int]:
        """Return the number and the type of the items of a list, and their position."""
        header = self._data[position]
        position += 1
        count, kind = header >> _HIGH, header & _LOW
        if count == _LONG_LIST:
            count, position = _varint(self._data, position)
        self._check(count, position)
        return count, kind, position

    def _check(self, count: int, position: int) -> None:
        """Check a number of items or bytes: each item has a byte or more."""
        if count > len(self._data) - position:
            raise FooterError("a value is longer than its footer")

    def _skip(self, kind: int, position: int, depth: int) -> int:
        """Return the position behind a value, without building it."""
        if depth > _MOST_DEPTH:
            raise FooterError("its footer is nested too deeply")
        if kind in _SIZES:
            position += _SIZES[kind]
        elif kind in {_I16, _I32, _I64}:
            _, position = _varint(self._data, position)
        elif kind == _BINARY:
            length, position = _varint(self._data, position)
            self._check(length, position)
            position += length
        elif kind == _STRUCT:
            _, position = self.struct(position, depth, None)
        elif kind in {_LIST, _SET}:
            count, item, position = self._header(position)
            position = self._skip_all((item,), count, position, depth)
        elif kind == _MAP:
            count, position = _varint(self._data, position)
            self._check(count, position)
            if count:
                kinds = self._data[position]
                position = self._skip_all((kinds >> _HIGH, kinds & _LOW), count, position + 1, depth)
        else:
            raise FooterError(f"its footer has a value of the unknown type {kind}")
        return position

    def _skip_all(self, kinds: tuple[int, ...], count: int, position: int, depth: int) -> int:
        for _ in range(count):
            for kind in kinds:
                position = self._skip(kind, position, depth + 1)
        return position


def _zigzag(data: memoryview, position: int) -> tuple[int, int]:
    number, position = _varint(data, position)
    return (number >> 1) ^ -(number & 1), position


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & _SEVEN_BITS) << shift
        if not byte & _MORE:
            return number, position
        shift += 7
        if shift > _VARINT_BITS:
            raise FooterError("a number is too long")
