"""Takes over the partitions of a large table that are as an earlier commit has them.

A range of partitions is what a folder of files has: it begins where `ranges.cut` says so. Partitions of
changed ranges are read; folders with none of them stay as they are, and the others are made anew.
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

# What may be the shape of a partition in its line, and is nothing else in most.
_SHAPE = re.compile(rb'"shape":"([0-9a-f]+)"')
Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class Ranges:
    """The ranges of an earlier commit, by the first partition of each, and which of them are the same now."""

    firsts: Sequence[str]
    same: Sequence[bool]

    def have(self, name: str) -> bool:
        """Tell whether an earlier partition is in a range that is the same."""
        return self.same[bisect_right(self.firsts, name) - 1]

    def all_same(self, first: str, end: str | None) -> bool:
        """Tell whether all ranges are the same that have something from one name up to another one."""
        low = max(bisect_right(self.firsts, first) - 1, 0)
        high = len(self.firsts) if end is None else bisect_left(self.firsts, end)
        return all(self.same[low:high])


def ranges_of(reader: Reader, folders: str, same: Collection[str]) -> Ranges:
    """Return the ranges of a table by its folders; those are the same that begin with one of these."""
    firsts = [first for first, _, _ in _folders(reader, folders)]
    return Ranges(firsts, [digest(one if cut(one)[1] else "") in same for one in firsts])


def spliced(
    reader: Reader, files: Iterable[str], folders: str | None, ranges: Ranges, lines: Lines
) -> tuple[Lines, dict[str, str]]:
    """Return the lines that are to be cut anew, sorted by name, and the folders that stay, by theirs.

    An earlier commit has a table's partitions in `files` or `folders`; `lines` are those of changed ranges.
    """
    found = _folders(reader, folders) if folders else []
    if not found:
        return sorted([*lines, *_lines(reader, files, ranges)]), {}
    # Each folder goes on to the next one, and the first begins before all names.
    ends = [first for first, _, _ in found[1:]]
    touched = {bisect_right(ends, name) for name, _ in lines}
    for place, (begin, end) in enumerate(zip(["", *ends], [*ends, None], strict=True)):
        if not ranges.all_same(begin, end):
            touched.add(place)
    # What a folder begins with may be gone, and the rest of it is then the end of the one before it.
    again = {one for place in touched for one in (place, place - 1) if one >= 0}
    while True:
        numbers = (number for place in sorted(again) for number in reader.tree(found[place][2]).values())
        made = sorted([*lines, *_lines(reader, numbers, ranges)])
        if not again or len(made) > FEW or len(again) == len(found):
            return made, {name: number for place, (_, name, number) in enumerate(found) if place not in again}
        # They may be few enough for one file.
        again = set(range(len(found)))


def used(reader: Reader, shapes: Collection[str], lines: Lines, folders: Iterable[str]) -> set[str]:
    """Return those of some shapes that partitions in lines or folders have; it reads as few as it can."""
    left = set(shapes)
    numbers = (number for folder in folders for number in reader.tree(folder).values())
    for text in chain((text.encode() for _, text in lines), map(reader.blob, numbers)):
        if not left:
            break
        if not left.isdisjoint(one.decode() for one in _SHAPE.findall(text)):
            left -= {json.loads(one)["shape"] for one in text.splitlines()}
    return set(shapes) - left


def _folders(reader: Reader, tree: str) -> list[tuple[str, str, str]]:
    """Return the first partition, the name and the id of each folder of a table, sorted."""
    found = []
    for name, number in reader.tree(tree).items():
        first, _, _ = reader.blob(reader.tree(number)[f"{name}.jsonl"]).partition(b"\n")
        found.append((str(json.loads(first)["name"]), name, number))
    return sorted(found)


def _lines(reader: Reader, files: Iterable[str], ranges: Ranges) -> Iterator[tuple[str, str]]:
    """Give the partitions in files that are in ranges that are the same."""
    for number in files:
        for text in reader.blob(number).decode().split("\n"):
            if text and ranges.have(name := json.loads(text)["name"]):
                yield name, text
