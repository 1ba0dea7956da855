"""Reuse the unchanged partitions of a large table from an earlier commit.

A range of partitions is the content of a folder of files: `ranges.cut` returns where it begins. Partitions
of changed ranges are read; folders without any of them are kept, and the others are written again.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lakehouse.catalog.documents import digest
from lakehouse.catalog.ranges import FEW, cut
from lakehouse.catalog.store import Reader

# The shape in the line of a partition; the same text may also occur in a value, which is rare.
_SHAPE = re.compile(rb'"shape":"([0-9a-f]+)"')
Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class Ranges:
    """The ranges of an earlier commit, by the first partition of each, and which of them are unchanged."""

    firsts: Sequence[str]
    same: Sequence[bool]

    def have(self, name: str) -> bool:
        """Return whether an earlier partition is in an unchanged range."""
        return self.same[bisect_right(self.firsts, name) - 1]

    def all_same(self, first: str, end: str | None) -> bool:
        """Return whether all ranges between two names are unchanged; `end` is exclusive, None for no end."""
        low = max(bisect_right(self.firsts, first) - 1, 0)
        high = len(self.firsts) if end is None else bisect_left(self.firsts, end)
        return all(self.same[low:high])


def ranges_of(reader: Reader, folders: str, same: Collection[str]) -> Ranges:
    """Return the ranges of a table's folders; `same` has the digests of the unchanged ones."""
    firsts = [first for first, _, _ in _folders(reader, folders)]
    return Ranges(firsts, [digest(first if cut(first)[1] else "") in same for first in firsts])


def spliced(
    reader: Reader, files: Iterable[str], folders: str | None, ranges: Ranges, lines: Lines
) -> tuple[Lines, dict[str, str]]:
    """Return the lines to be written again, sorted by name, and the folders to keep, by their names.

    An earlier commit has a table's partitions in `files` or `folders`; `lines` are those of changed ranges.
    """
    earlier = _folders(reader, folders) if folders else []
    if not earlier:
        return sorted([*lines, *_lines(reader, files, ranges)]), {}
    # Each folder ends where the next one begins, and the first begins before all names.
    ends = [first for first, _, _ in earlier[1:]]
    touched = {bisect_right(ends, name) for name, _ in lines}
    for index, (begin, end) in enumerate(zip(["", *ends], [*ends, None], strict=True)):
        if not ranges.all_same(begin, end):
            touched.add(index)
    # If the first partition of a folder is gone, the rest of it belongs to the folder before it.
    rewritten = {index for last in touched for index in (last, last - 1) if index >= 0}
    while True:
        numbers = (
            number for index in sorted(rewritten) for number in reader.tree(earlier[index][2]).values()
        )
        new_lines = sorted([*lines, *_lines(reader, numbers, ranges)])
        if not rewritten or len(new_lines) > FEW or len(rewritten) == len(earlier):
            unchanged = (folder for index, folder in enumerate(earlier) if index not in rewritten)
            return new_lines, {name: number for _, name, number in unchanged}
        # All partitions may fit into one file.
        rewritten = set(range(len(earlier)))


def used(reader: Reader, shapes: Collection[str], lines: Lines, folders: Iterable[str]) -> set[str]:
    """Return which of some shapes the partitions in lines or folders have, reading as little as possible."""
    unused = set(shapes)
    numbers = (number for folder in folders for number in reader.tree(folder).values())
    for text in chain((text.encode() for _, text in lines), map(reader.blob, numbers)):
        if not unused:
            break
        if not unused.isdisjoint(shape.decode() for shape in _SHAPE.findall(text)):
            unused -= {json.loads(line)["shape"] for line in text.splitlines()}
    return set(shapes) - unused


def _folders(reader: Reader, tree: str) -> list[tuple[str, str, str]]:
    """Return the first partition, the name and the id of each folder of a table, sorted."""
    folders = []
    for name, number in reader.tree(tree).items():
        first, _, _ = reader.blob(reader.tree(number)[f"{name}.jsonl"]).partition(b"\n")
        folders.append((str(json.loads(first)["name"]), name, number))
    return sorted(folders)


def _lines(reader: Reader, files: Iterable[str], ranges: Ranges) -> Iterator[tuple[str, str]]:
    """Give the partitions of files that are in unchanged ranges."""
    for number in files:
        for text in reader.blob(number).decode().split("\n"):
            if text and ranges.have(name := json.loads(text)["name"]):
                yield name, text
