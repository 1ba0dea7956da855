"""Check the sizes of the objects of a pack before it is unpacked: a few bytes can announce terabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

# The limits of one object and of a pack, far beyond any history of a catalog.
_OBJECT_BYTES, _ALL_BYTES = 256 << 20, 64 << 30
_CHUNK_BYTES = 1 << 16
_HEADER_BYTES, _END_BYTES = 12, 20
# The most bits of a length.
_WIDEST = 64
_OFFSET_DELTA, _REFERENCE_DELTA = 6, 7
# The most bytes of the two lengths at the start of a delta.
_DELTA_BEGINS = 20


def want_bounded(file: IO[bytes]) -> None:
    """Raise ValueError if a pack, or an object in it, is larger than its limit."""
    total = 0
    for size in sizes(file):
        total += size
        if size > _OBJECT_BYTES or total > _ALL_BYTES:
            limit, kind = (_OBJECT_BYTES, "an object") if size > _OBJECT_BYTES else (_ALL_BYTES, "a pack")
            raise ValueError(f"{kind} of more than {limit >> 20} MiB")


def sizes(file: IO[bytes]) -> Iterator[int]:
    """Give the size of each object of a pack, and of each delta's result; ValueError for a damaged pack."""
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
            yield _result_size(begins)


def _head(file: IO[bytes]) -> tuple[int, int]:
    """Return the kind and the unpacked size of the next object."""
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
    """Skip the data of an object; return its first bytes."""
    inflate, begins, length = zlib.decompressobj(), b"", 0
    while not inflate.eof:
        packed = inflate.unconsumed_tail or file.read(_CHUNK_BYTES)
        if not packed:
            raise ValueError("it is cut off")
        chunk = inflate.decompress(packed, _CHUNK_BYTES)
        begins += chunk[: _DELTA_BEGINS - len(begins)]
        length += len(chunk)
        if length > size:
            raise ValueError("an object is longer than it says")
    file.seek(-len(inflate.unused_data), 1)
    return begins


def _result_size(delta: bytes) -> int:
    """Return the size of a delta's result: a delta begins with the lengths of its base and of its result."""
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
