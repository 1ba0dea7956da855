"""Avro object container files: a few fields of each record, read or replaced; every other byte is copied.

The fields that a writer has added beside the known ones stay as they are. Standard library only: a commit is
served on hosts that have no PyIceberg.
Reference: https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A field of a record, by the names of the records' fields that lead to it.
Field = tuple[str, ...]
# The values of the requested fields of a record, in their order; None for null and for a missing field.
Values = tuple[Any, ...]

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
# The limit of all blocks of a file, unpacked: a small file of a hostile writer may unpack to any size.
MOST_BYTES = 512 << 20
_MOST_BLOCK_BYTES = 16 << 20
# The limit of a schema's types: named types that contain each other multiply.
_MOST_TYPES = 10_000
# The limit of an array that is read, such as the split offsets of a file.
_MOST_ITEMS = 100_000
_VARINT_BITS = 63
_SEVEN_BITS, _MORE = 0x7F, 0x80


class DamagedAvroError(ValueError):
    """The content is no Avro file, or one with an unsupported feature."""


@dataclass
class _Span:
    """The position of a field's value in a block."""

    start: int
    end: int
    value: Any


# Skips a value of a type at a position, and returns the position behind it; records the requested fields.
_Walk = Callable[[bytes, int, dict[int, _Span]], int]
# Returns the value at a position, and the position behind it.
_Decode = Callable[[bytes, int], tuple[Any, int]]


def read(content: bytes, fields: Sequence[Field], required: Collection[Field] = ()) -> Iterator[Values]:
    """Give the requested fields of each record; DamagedAvroError, also for a schema without a required one.

    Strings are text, bytes and fixed values bytes, numbers int or float, arrays of them lists.
    """
    container = _Container(content, fields)
    if absent := set(required) - {fields[number] for number in container.numbers}:
        raise DamagedAvroError(f"its schema has no {'.'.join(min(absent))}")
    for count, block in container.blocks():
        for spans in container.records(count, block):
            yield _values(spans, fields)


def replaced(content: bytes, fields: Sequence[Field], replace: Callable[[Values], Values]) -> bytes:
    """Return the file with other values in some fields of its records; DamagedAvroError.

    `replace` gets the values of a record, and returns as many; a value of None cannot be replaced.
    """
    container = _Container(content, fields)
    packed = [content[: container.start]]
    for count, block in container.blocks():
        pieces, copied = [], 0
        for spans in container.records(count, block):
            values = replace(_values(spans, fields))
            for number in sorted(spans, key=lambda number: spans[number].start):
                span = spans[number]
                pieces += [block[copied : span.start], _encoded(values[number])]
                copied = span.end
        pieces.append(block[copied:])
        data = container.pack(b"".join(pieces))
        packed += [_zigzag(count), _zigzag(len(data)), data, container.sync]
    return b"".join(packed)


def _values(spans: Mapping[int, _Span], fields: Sequence[Field]) -> Values:
    return tuple(spans[number].value if number in spans else None for number in range(len(fields)))


class _Container:
    """The header of a file, and its blocks."""

    def __init__(self, content: bytes, fields: Sequence[Field]) -> None:
        if not content.startswith(_MAGIC):
            raise DamagedAvroError("it is no Avro file")
        self._content = content
        try:
            header, position = _mapping(content, len(_MAGIC))
            schema = json.loads(header["avro.schema"])
            types = _Types()
            self._walk = types.walk(schema, dict(enumerate(fields)))
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise DamagedAvroError(f"its header cannot be read: {type(error).__name__}: {error}") from error
        # Of the fields that the schema has.
        self.numbers = types.numbers
        self._codec = header.get("avro.codec", b"null").decode(errors="replace")
        if self._codec not in {"null", "deflate"}:
            raise DamagedAvroError(f"it is compressed by {self._codec}; deflate and null can be read")
        self.start = position + _SYNC_BYTES
        self.sync = content[position : self.start]

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Give each block, unpacked, with the number of its records."""
        position, remaining = self.start, MOST_BYTES
        while position < len(self._content):
            count, position = _number(self._content, position)
            size, position = _length(self._content, position)
            block = self._unpack(self._content[position : position + size], min(remaining, _MOST_BLOCK_BYTES))
            remaining -= len(block)
            position += size
            if self._content[position : position + _SYNC_BYTES] != self.sync:
                raise DamagedAvroError("a block does not end where it should")
            position += _SYNC_BYTES
            # A record has at least a byte: no engine writes one without fields.
            if not 0 <= count <= len(block):
                raise DamagedAvroError(f"a block of {len(block)} bytes says that it has {count} records")
            yield count, block

    def records(self, count: int, block: bytes) -> Iterator[dict[int, _Span]]:
        """Give the positions of the requested fields in each of the `count` records of a block."""
        position = 0
        for _ in range(count):
            spans: dict[int, _Span] = {}
            try:
                position = self._walk(block, position, spans)
            except (LookupError, UnicodeDecodeError, RecursionError) as error:
                raise DamagedAvroError(f"a record cannot be read: {type(error).__name__}") from error
            if position > len(block):
                raise DamagedAvroError("a record is longer than its block")
            yield spans
        if position != len(block):
            raise DamagedAvroError("a block is longer than its records")

    def pack(self, block: bytes) -> bytes:
        """Compress a block with the codec of the file."""
        if self._codec == "null":
            return block
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return packer.compress(block) + packer.flush()

    def _unpack(self, data: bytes, limit: int) -> bytes:
        if self._codec == "null":
            block = data
        else:
            unpacker = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
            try:
                block = unpacker.decompress(data, limit + 1)
            except zlib.error as error:
                raise DamagedAvroError(str(error)) from error
        if len(block) > limit:
            raise DamagedAvroError(
                f"it unpacks to more than {MOST_BYTES >> 20} MiB, or a block to {_MOST_BLOCK_BYTES >> 20} MiB"
            )
        return block


class _Types:
    """Compiles a schema into functions that skip its values."""

    def __init__(self) -> None:
        # A type is defined once, and referenced by its name afterwards.
        self._types_by_name: dict[str, Any] = {}
        self._remaining = _MOST_TYPES
        # Of fields that were found.
        self.numbers: set[int] = set()

    def walk(self, schema: Any, fields: Mapping[int, Field]) -> _Walk:
        """Return a function that skips a value; of the numbered `fields`, () is the value itself."""
        self._remaining -= 1
        if self._remaining < 0:
            raise DamagedAvroError(f"its schema is longer than {_MOST_TYPES}")
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, list):
            return self._union(kind, fields)
        if isinstance(kind, dict):
            return self.walk(kind, fields)
        if isinstance(kind, str) and kind in self._types_by_name:
            return self.walk(self._types_by_name[kind], fields)
        if isinstance(schema, dict) and isinstance(name := schema.get("name"), str):
            walk = self._compound(str(kind), schema, fields)
            # Afterwards: a type that contains itself is not supported.
            self._types_by_name.setdefault(name, schema)
            return walk
        return self._compound(str(kind), schema, fields)

    def _compound(self, kind: str, schema: Any, fields: Mapping[int, Field]) -> _Walk:
        if kind == "record":
            return self._record(schema["fields"], fields)
        if [field for field in fields.values() if field]:
            raise DamagedAvroError(f"{'.'.join(next(iter(fields.values())))} is in no record")
        if kind == "array":
            walk = _items([self.walk(schema["items"], {})])
            item = schema["items"]
            name = item.get("type") if isinstance(item, dict) else item
            # Of other items, the array is skipped as a whole.
            decode = _VALUES[name][1] if isinstance(name, str) and name in _VALUES else None
            return self._recording(walk, _array(decode), fields) if decode else walk
        if kind == "map":
            return _items([_text, self.walk(schema["values"], {})])
        if kind == "fixed":
            size = int(schema["size"])
            return self._recording(_fixed(size), _sized(size), fields)
        if kind == "null":
            return _fixed(0)
        walk, value = _VALUES[kind]
        return self._recording(walk, value, fields)

    def _recording(self, walk: _Walk, decode: _Decode, fields: Mapping[int, Field]) -> _Walk:
        self.numbers.update(fields)
        return _recording(walk, decode, fields)

    def _record(self, fields: Sequence[Any], wanted_fields: Mapping[int, Field]) -> _Walk:
        nested: dict[str, dict[int, Field]] = {}
        for number, path in wanted_fields.items():
            nested.setdefault(path[0] if path else "", {})[number] = path[1:]
        walks = [self.walk(field["type"], nested.get(field["name"], {})) for field in fields]

        def walk(block: bytes, position: int, spans: dict[int, _Span]) -> int:
            for walk_field in walks:
                position = walk_field(block, position, spans)
            return position

        return walk

    def _union(self, branches: Sequence[Any], fields: Mapping[int, Field]) -> _Walk:
        walks = [self.walk(branch, {} if branch == "null" else fields) for branch in branches]

        def walk(block: bytes, position: int, spans: dict[int, _Span]) -> int:
            number, position = _number(block, position)
            if number < 0:
                raise DamagedAvroError(f"a union has no branch {number}")
            return walks[number](block, position, spans)

        return walk


def _recording(walk: _Walk, decode: _Decode, fields: Mapping[int, Field]) -> _Walk:
    """Return a function that records a value for the requested fields; without any, it only skips it."""
    if not fields:
        return walk
    numbers = list(fields)

    def record(block: bytes, position: int, spans: dict[int, _Span]) -> int:
        value, end = decode(block, position)
        for number in numbers:
            spans[number] = _Span(position, end, value)
        return end

    return record


def _items(walks: Sequence[_Walk]) -> _Walk:
    """Return a function that skips the blocks of an array or a map."""

    def walk(block: bytes, position: int, spans: dict[int, _Span]) -> int:
        while True:
            count, position = _number(block, position)
            if count == 0:
                return position
            if count < 0:
                # A negative count has the size of the block behind it.
                size, position = _length(block, position)
                position += size
                continue
            for _ in range(count):
                start = position
                for walk_item in walks:
                    position = walk_item(block, position, spans)
                if position == start:
                    # Items of no bytes: their number is unlimited.
                    break

    return walk


def _fixed(size: int) -> _Walk:
    if size < 0:
        raise DamagedAvroError(f"a type has a size of {size}")
    return lambda _, position, __: position + size


def _integer(block: bytes, position: int, _: dict[int, _Span]) -> int:
    while block[position] & _MORE:
        position += 1
    return position + 1


def _text(block: bytes, position: int, _: dict[int, _Span]) -> int:
    size, position = _length(block, position)
    return position + size


def _number(block: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = block[position]
        position += 1
        number |= (byte & _SEVEN_BITS) << shift
        if not byte & _MORE:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > _VARINT_BITS:
            raise DamagedAvroError("a number is too long")


def _length(block: bytes, position: int) -> tuple[int, int]:
    size, position = _number(block, position)
    if not 0 <= size <= len(block) - position:
        raise DamagedAvroError("a value is longer than what it is in")
    return size, position


def _string(block: bytes, position: int) -> tuple[str, int]:
    size, position = _length(block, position)
    return block[position : position + size].decode(), position + size


def _raw(block: bytes, position: int) -> tuple[bytes, int]:
    size, position = _length(block, position)
    return block[position : position + size], position + size


def _sized(size: int) -> _Decode:
    """Return a function that decodes a value of so many bytes."""
    return lambda block, position: (block[position : position + size], position + size)


def _packed(code: str) -> _Decode:
    """Return a function that decodes a value as `struct` does."""
    layout = struct.Struct(code)

    def decode(block: bytes, position: int) -> tuple[Any, int]:
        if position + layout.size > len(block):
            raise DamagedAvroError("a value is longer than what it is in")
        return layout.unpack_from(block, position)[0], position + layout.size

    return decode


def _array(decode: _Decode) -> _Decode:
    """Return a function that decodes an array."""

    def decode_all(block: bytes, position: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, position = _number(block, position)
            if count == 0:
                return items, position
            if count < 0:
                # A negative count has the size of the block behind it.
                _, position = _length(block, position)
            if abs(count) > len(block) - position:
                raise DamagedAvroError("an array is longer than what it is in")
            if len(items) + abs(count) > _MOST_ITEMS:
                raise DamagedAvroError(f"an array has more than {_MOST_ITEMS} items")
            for _ in range(abs(count)):
                item, position = decode(block, position)
                items.append(item)

    return decode_all


_VALUES: Mapping[str, tuple[_Walk, _Decode]] = {
    **dict.fromkeys(("int", "long", "enum"), (_integer, _number)),
    "string": (_text, _string),
    "bytes": (_text, _raw),
    "boolean": (_fixed(1), _packed("<?")),
    "float": (_fixed(4), _packed("<f")),
    "double": (_fixed(8), _packed("<d")),
}


def _mapping(content: bytes, position: int) -> tuple[dict[str, bytes], int]:
    mapping: dict[str, bytes] = {}
    while True:
        count, position = _number(content, position)
        if count == 0:
            return mapping, position
        if count < 0:
            _, position = _number(content, position)
        for _ in range(min(abs(count), len(content))):
            key, position = _string(content, position)
            size, position = _length(content, position)
            mapping[key] = content[position : position + size]
            position += size


def _encoded(value: str | int) -> bytes:
    if isinstance(value, int):
        return _zigzag(value)
    text = value.encode()
    return _zigzag(len(text)) + text


def _zigzag(value: int) -> bytes:
    remaining = (value << 1) ^ (value >> _VARINT_BITS)
    encoded = bytearray()
    while remaining & ~_SEVEN_BITS:
        encoded.append(remaining & _SEVEN_BITS | _MORE)
        remaining >>= 7
    encoded.append(remaining)
    return bytes(encoded)
