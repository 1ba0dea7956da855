"""Where the partitions of a table are cut into files.

A cut depends on the name of the partition behind it alone. So one partition more changes one file, however
many there are, and the same partitions are in the same files whatever was there before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from lakehouse.catalog.names import escaped

# That many partitions of a table are one file; a table with more has files of so many on average.
FEW = 64
_FILE, FOLDER = 64, 64 * 64
_LONGEST = 80
# As `cut` says it of a folder.
HASH_IN_SQL = "encode(sha256(convert_to({name}, 'UTF8')), 'hex')"
CUT_IN_SQL = f"('x' || left({HASH_IN_SQL}, 8))::bit(32)::int & {FOLDER - 1} = 0"


def cut(name: str) -> tuple[bool, bool]:
    """Tell whether a file begins with this partition, and whether a folder of files does."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return number % _FILE == 0, number % FOLDER == 0


def folders(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Give each folder with its files, each of them by name, of the lines of sorted partitions."""
    files: list[tuple[str, list[str]]] = []
    for name, text in lines:
        new_file, new_folder = cut(name)
        if new_folder and files:
            yield _slug(files[0][0]), _named(files)
            files = []
        if new_file or not files:
            files.append((name, []))
        files[-1][1].append(text)
    if files:
        yield _slug(files[0][0]), _named(files)


def _named(files: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    return [(f"{_slug(first)}.jsonl", lines) for first, lines in files]


def _slug(name: str) -> str:
    """Return the name of what begins with this partition, not too long for a file system."""
    found = escaped(name)
    if len(found) <= _LONGEST:
        return found
    return f"{found[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
