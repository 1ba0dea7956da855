"""How large the objects of a pack are, before any of them is unpacked: a few bytes can announce terabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

# Of one object, and of all together: no history of a catalog comes near.
_OBJECT_BYTES, _ALL_BYTES = 256 << 20, 64 << 30
_CHUNK_BYTES = 1 << 16
_HEADER_BYTES, _END_BYTES = 12, 20
# Bits of a length.
_WIDEST = 64
_OFFSET_DELTA, _REFERENCE_DELTA = 6, 7
# The two lengths that a delta begins with.
_DELTA_BEGINS = 20


def want_bounded(file: IO[bytes]) -> None:
    """Raise ValueError where a pack of git, read from its beginning, holds more than a history does."""
    total = 0
    for size in sizes(file):
        total += size
        if size > _OBJECT_BYTES or total > _ALL_BYTES:
            most, what = (_OBJECT_BYTES, "an object") if size > _OBJECT_BYTES else (_ALL_BYTES, "a pack")
            raise ValueError(f"{what} of more than {most >> 20} MiB")


def sizes(file: IO[bytes]) -> Iterator[int]:
    """Give the bytes of each object of a pack, and of what a delta makes; ValueError where it is none."""
    file.seek(0)
    header = file.read(_HEADER_BYTES)
    if header[:4] != b"PACK" or len(header) < _HEADER_BYTES:
        raise ValueError("it does not begin as a pack")
    for _ in range(int.from_bytes(header[8:])):
        kind, size = _head(file)
        if kind == _OFFSET_DELTA:
            while _byte(file) & 0x80:
                pass
        elif kind == _REFERENCE_DELTA:
            file.read(_END_BYTES)
        yield size
        begins = _skip(file, size)
        if kind in {_OFFSET_DELTA, _REFERENCE_DELTA}:
            yield _made(begins)


def _head(file: IO[bytes]) -> tuple[int, int]:
    """Return the kind of the next object and its bytes before they were packed."""
    byte = _byte(file)
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 0x80:
        if shift > _WIDEST:
            raise ValueError("an object has no length")
        byte = _byte(file)
        size |= (byte & 0x7F) << shift
        shift += 7
    return kind, size


def _skip(file: IO[bytes], size: int) -> bytes:
    """Pass an object's bytes; return how they begin."""
    inflate, begins, length = zlib.decompressobj(), b"", 0
    while not inflate.eof:
        packed = inflate.unconsumed_tail or file.read(_CHUNK_BYTES)
        if not packed:
            raise ValueError("it is cut off")
        said = inflate.decompress(packed, _CHUNK_BYTES)
        begins += said[: _DELTA_BEGINS - len(begins)]
        length += len(said)
        if length > size:
            raise ValueError("an object is longer than it says")
    file.seek(-len(inflate.unused_data), 1)
    return begins


def _made(delta: bytes) -> int:
    """Return how many bytes a delta makes, by its beginning: the base's length, and the result's."""
    numbers, number, shift = list[int](), 0, 0
    for byte in delta:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(number)
            number = shift = 0
    if len(numbers) < 2:  # noqa: PLR2004 -- the two lengths
        raise ValueError("a delta has no length")
    return numbers[1]


def _byte(file: IO[bytes]) -> int:
    read = file.read(1)
    if not read:
        raise ValueError("it is cut off")
    return read[0]
