"""Row groups in the footer of a Parquet file, with the standard library alone.

References: https://parquet.apache.org/docs/file-format/metadata/ (parquet.thrift: FileMetaData, RowGroup,
ColumnMetaData) and the compact protocol of Apache Thrift (doc/specs/thrift-compact-protocol.md).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from lakehouse.census.contents import RowGroup

MAGIC = b"PAR1"
# The last bytes of a file: the length of its footer, and the magic number.
TAIL_BYTES = 8
MOST_FOOTER_BYTES = 32 << 20
# Values of a footer: a small one of a hostile writer names no more than it has bytes.
_MOST_DEPTH = 32
_VARINT_BITS = 63
_NUMBERS = 1 << 63
# Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
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
        raise FooterError(f"its footer has {length} bytes")
    return length


def row_groups(footer: bytes) -> tuple[RowGroup, ...]:
    """Return the row groups of a footer, without its last bytes; FooterError."""
    try:
        metadata, _ = _struct(memoryview(footer), 0, 0)
    except (LookupError, struct.error) as error:
        raise FooterError(f"its footer is cut: {type(error).__name__}") from None
    listed = metadata.get(_ROW_GROUPS, [])
    if not isinstance(metadata.get(_ROWS), int) or not isinstance(listed, list):
        raise FooterError("its footer has no number of rows")
    return tuple(_row_group(group) for group in listed)


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


def _struct(data: memoryview, position: int, depth: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by id, and the position behind it."""
    if depth > _MOST_DEPTH:
        raise FooterError("its footer is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        header = data[position]
        position += 1
        kind, delta = header & _LOW, header >> _HIGH
        if kind == _STOP:
            return fields, position
        if delta:
            number += delta
        else:
            number, position = _zigzag(data, position)
        if kind in {_TRUE, _FALSE}:
            fields[number] = kind == _TRUE
        else:
            fields[number], position = _value(kind, data, position, depth + 1)


def _value(kind: int, data: memoryview, position: int, depth: int) -> tuple[Any, int]:
    reader = _READERS.get(kind)
    if reader is None:
        raise FooterError(f"its footer has a value of the unknown type {kind}")
    return reader(data, position, depth)


def _list(data: memoryview, position: int, depth: int) -> tuple[list[Any], int]:
    if depth > _MOST_DEPTH:
        raise FooterError("its footer is nested too deeply")
    header = data[position]
    position += 1
    count, kind = header >> _HIGH, header & _LOW
    if count == _LONG_LIST:
        count, position = _varint(data, position)
    # Each item has a byte or more.
    if count > len(data) - position:
        raise FooterError("a list is longer than its footer")
    items = []
    for _ in range(count):
        if kind in {_TRUE, _FALSE}:
            item, position = data[position] == _TRUE, position + 1
        else:
            item, position = _value(kind, data, position, depth + 1)
        items.append(item)
    return items, position


def _map(data: memoryview, position: int, depth: int) -> tuple[None, int]:
    """Skip a map: no struct that is read has one."""
    count, position = _varint(data, position)
    if count > len(data) - position:
        raise FooterError("a map is longer than its footer")
    if count:
        kinds = data[position]
        position += 1
        for _ in range(count):
            for kind in (kinds >> _HIGH, kinds & _LOW):
                if kind in {_TRUE, _FALSE}:
                    position += 1
                else:
                    _, position = _value(kind, data, position, depth + 1)
    return None, position


def _bytes(data: memoryview, position: int, _: int) -> tuple[memoryview, int]:
    length, position = _varint(data, position)
    if length > len(data) - position:
        raise FooterError("a text is longer than its footer")
    return data[position : position + length], position + length


def _double(data: memoryview, position: int, _: int) -> tuple[float, int]:
    return float(struct.unpack_from("<d", data, position)[0]), position + 8


def _integer(data: memoryview, position: int, _: int) -> tuple[int, int]:
    return _zigzag(data, position)


def _byte(data: memoryview, position: int, _: int) -> tuple[int, int]:
    return data[position], position + 1


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


_READERS: dict[int, Callable[[memoryview, int, int], tuple[Any, int]]] = {
    _BYTE: _byte,
    **dict.fromkeys((_I16, _I32, _I64), _integer),
    _DOUBLE: _double,
    _BINARY: _bytes,
    **dict.fromkeys((_LIST, _SET), _list),
    _MAP: _map,
    _STRUCT: _struct,
}
