"""How the partitions of a table are split into files, by content-defined chunking.

Whether a file begins with a partition depends on the name of that partition alone. So a new partition changes
one file, however many there are, and the same partitions are always in the same files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from lakehouse.catalog.names import escaped

# Up to so many partitions of a table are one file; a table with more has files of that size on average.
FEW = 64
_FILE, FOLDER = 64, 64 * 64
_LONGEST = 80
# The same as `cut` for a folder.
HASH_IN_SQL = "encode(sha256(convert_to({name}, 'UTF8')), 'hex')"
CUT_IN_SQL = f"('x' || left({HASH_IN_SQL}, 8))::bit(32)::int & {FOLDER - 1} = 0"


def cut(name: str) -> tuple[bool, bool]:
    """Return whether a file begins with this partition, and whether a folder of files does."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return number % _FILE == 0, number % FOLDER == 0


def folders(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[tuple[str, list[str]]]]]:
    """Give the folders and their files, each with its name, for the lines of sorted partitions."""
    files: list[tuple[str, list[str]]] = []
    for name, text in lines:
        new_file, new_folder = cut(name)
        if new_folder and files:
            yield _slug(files[0][0]), _with_names(files)
            files = []
        if new_file or not files:
            files.append((name, []))
        files[-1][1].append(text)
    if files:
        yield _slug(files[0][0]), _with_names(files)


def _with_names(files: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    return [(f"{_slug(first)}.jsonl", lines) for first, lines in files]


def _slug(name: str) -> str:
    """Return the name of the file or folder that begins with this partition, shortened for a file system."""
    slug = escaped(name)
    if len(slug) <= _LONGEST:
        return slug
    return f"{slug[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
