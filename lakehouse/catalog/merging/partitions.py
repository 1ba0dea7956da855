"""The partitions of a table that both sides have changed become one list, in the files that it is cut into.

Of a large table only those files are read that both have changed, unless one of them has made a new file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lakehouse.catalog import diff
from lakehouse.catalog.build import FILES, PARTITIONS, SHAPES, Entries, Folder, put_lines
from lakehouse.catalog.documents import Document, digest, line, pretty
from lakehouse.catalog.merging.sides import Three, at
from lakehouse.catalog.ranges import FEW, folders
from lakehouse.catalog.store import Writer

# Returns what a partition becomes that both sides have changed, by its name and documents.
Decide = Callable[[str, Three[Document | None]], Document | None]
Folders = Mapping[str, str]
NAMES = SHAPES, PARTITIONS, FILES


class Partitions:
    """Merges those of one table."""

    def __init__(self, writer: Writer, files: Three[Folders], decide: Decide) -> None:
        """`files` are those of the table's folder that are about partitions, by name."""
        self._writer, self._files, self._decide = writer, files, decide
        self._shapes = files.each(lambda own: self._said(own.get(SHAPES)))
        # Also those of partitions that are neither side's own.
        self._known = {key: shape for one in self._shapes for key, shape in one.items()}
        self._lines: dict[str, dict[str, str]] = {}

    def merged(self) -> Entries:
        """Write them; return what is about partitions in the table's folder."""
        below = self._by_file()
        made: Entries = {FILES: (True, below)} if below else self._anew()
        return made | {SHAPES: (False, self._used(made))} if made else {}

    def _anew(self) -> Entries:
        """Merge everything, and cut it anew."""
        lines, here = self._put(self._files.each(self._numbers)), Folder()
        if not lines:
            return {}
        put_lines(here, self._writer, lines)
        made = self._writer.tree(here.made(self._writer))
        return {name: (name == FILES, number) for name, number in made.items()}

    def _by_file(self) -> str | None:
        """Merge folders of files that have the same names on all sides; None where they have not."""
        trees = self._files.each(lambda own: self._tree(own.get(FILES)))
        if not _alike(trees) or sum(len(self._tree(one)) for one in trees.ours.values()) <= FEW:
            return None
        made = {}
        for folder in trees.ours:
            one = at(trees, folder, "")
            made[folder] = (True, self._folder(one) if one.apart else one.clean)
        return self._writer.add_tree(made)

    def _folder(self, numbers: Three[str]) -> str:
        trees = numbers.each(self._tree)
        if not _alike(trees):
            # The next folder begins where it did, so this one stays one.
            [(_, files)] = folders(self._put(trees.each(lambda tree: set(tree.values()))))
            return self._writer.add_tree({name: (False, self._blob(texts)) for name, texts in files})
        made = {}
        for file in trees.ours:
            one = at(trees, file, "")
            made[file] = (False, self._file(one) if one.apart else one.clean)
        return self._writer.add_tree(made)

    def _file(self, numbers: Three[str]) -> str:
        return self._blob(text for _, text in self._put(numbers.each(lambda number: {number})))

    def _put(self, numbers: Three[set[str]]) -> list[tuple[str, str]]:
        """Return the partitions that are in files of these numbers, merged, and sorted by name."""
        lines = numbers.each(lambda some: dict(pair for one in some for pair in self._read(one).items()))
        found = []
        for name in sorted(lines.base.keys() | lines.ours.keys() | lines.theirs.keys()):
            one = at(lines, name, None)
            text = self._decided(name, one) if one.apart else one.clean
            if text is not None:
                found.append((name, text))
        return found

    def _decided(self, name: str, texts: Three[str | None]) -> str | None:
        whole = texts.each(lambda text: diff.whole(json.loads(text), self._known) if text else None)
        decided = self._decide(name, whole)
        if decided is None:
            return None
        said = {key: value for key, value in decided.items() if key != "storage"}
        shape = decided.get("storage", {})
        said["shape"] = digest(line(shape))
        self._known[said["shape"]] = shape
        return line(said)

    def _used(self, made: Entries) -> str:
        """Return the file of the shapes that partitions have."""
        if len({own.get(SHAPES) for own in self._files}) == len(self._shapes.ours) == 1:
            return self._files.ours[SHAPES]
        numbers = self._numbers({name: number for name, (_, number) in made.items()})
        texts = (text for number in numbers for text in self._read(number).values())
        used = {str(json.loads(text)["shape"]) for text in texts}
        return self._writer.add_blob(pretty({key: self._known[key] for key in used}))

    def _read(self, number: str) -> dict[str, str]:
        if number not in self._lines:
            texts = self._writer.blob(number).decode().split("\n")
            self._lines[number] = {json.loads(text)["name"]: text for text in texts if text}
        return self._lines[number]

    def _numbers(self, files: Folders) -> set[str]:
        return diff.ranges_of(self._writer, files)

    def _tree(self, number: str | None) -> Folders:
        return self._writer.tree(number) if number else {}

    def _said(self, number: str | None) -> Mapping[str, Any]:
        return dict(json.loads(self._writer.blob(number))) if number else {}

    def _blob(self, texts: Iterable[str]) -> str:
        return self._writer.add_blob("".join(f"{one}\n" for one in texts).encode())


def _alike(trees: Three[Folders]) -> bool:
    """Tell whether files begin at the same partitions on all sides."""
    return trees.base.keys() == trees.ours.keys() == trees.theirs.keys()
