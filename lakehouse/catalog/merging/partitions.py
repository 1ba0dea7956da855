"""Merge the partitions of a table that both sides have changed, file by file.

Of a large table only the files are read that both have changed, unless one side has a new file.
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

# Merges a partition that both sides have changed, by its name and documents.
Decide = Callable[[str, Three[Document | None]], Document | None]
Folders = Mapping[str, str]
NAMES = SHAPES, PARTITIONS, FILES


class Partitions:
    """Merges the partitions of one table."""

    def __init__(self, writer: Writer, files: Three[Folders], decide: Decide) -> None:
        """`files` are the entries of the table's folder for partitions, by name."""
        self._writer, self._files, self._decide = writer, files, decide
        self._shapes = files.each(lambda side: self._read_document(side.get(SHAPES)))
        # The shapes of all sides, and those of merged partitions.
        self._all_shapes = {name: shape for shapes in self._shapes for name, shape in shapes.items()}
        self._lines: dict[str, dict[str, str]] = {}

    def merged(self) -> Entries:
        """Write the merged partitions; return their entries for the table's folder."""
        folders = self._by_file()
        entries: Entries = {FILES: (True, folders)} if folders else self._merge_all()
        return entries | {SHAPES: (False, self._used_shapes(entries))} if entries else {}

    def _merge_all(self) -> Entries:
        """Merge all partitions, and split them into new files."""
        lines, folder = self._merge_lines(self._files.each(self._numbers)), Folder()
        if not lines:
            return {}
        put_lines(folder, self._writer, lines)
        entries = self._writer.tree(folder.write(self._writer))
        return {name: (name == FILES, number) for name, number in entries.items()}

    def _by_file(self) -> str | None:
        """Merge folders of files that have the same names on all sides; None if the names differ."""
        trees = self._files.each(lambda side: self._tree(side.get(FILES)))
        if not _same_names(trees) or sum(len(self._tree(number)) for number in trees.ours.values()) <= FEW:
            return None
        entries = {}
        for folder in trees.ours:
            ids = at(trees, folder, "")
            entries[folder] = (True, self._folder(ids) if ids.apart else ids.clean)
        return self._writer.add_tree(entries)

    def _folder(self, numbers: Three[str]) -> str:
        trees = numbers.each(self._tree)
        if not _same_names(trees):
            # The next folder begins at the same partition, so this one is not split.
            [(_, files)] = folders(self._merge_lines(trees.each(lambda tree: set(tree.values()))))
            return self._writer.add_tree({name: (False, self._blob(texts)) for name, texts in files})
        entries = {}
        for file in trees.ours:
            ids = at(trees, file, "")
            entries[file] = (False, self._file(ids) if ids.apart else ids.clean)
        return self._writer.add_tree(entries)

    def _file(self, numbers: Three[str]) -> str:
        return self._blob(text for _, text in self._merge_lines(numbers.each(lambda number: {number})))

    def _merge_lines(self, numbers: Three[set[str]]) -> list[tuple[str, str]]:
        """Return the merged partitions of files with these ids, sorted by name."""
        lines = numbers.each(
            lambda side: dict(line for number in side for line in self._read(number).items())
        )
        merged = []
        for name in sorted(lines.base.keys() | lines.ours.keys() | lines.theirs.keys()):
            texts = at(lines, name, None)
            text = self._merge_line(name, texts) if texts.apart else texts.clean
            if text is not None:
                merged.append((name, text))
        return merged

    def _merge_line(self, name: str, texts: Three[str | None]) -> str | None:
        documents = texts.each(
            lambda text: diff.with_storage(json.loads(text), self._all_shapes) if text else None
        )
        merged = self._decide(name, documents)
        if merged is None:
            return None
        partition = {key: value for key, value in merged.items() if key != "storage"}
        shape = merged.get("storage", {})
        partition["shape"] = digest(line(shape))
        self._all_shapes[partition["shape"]] = shape
        return line(partition)

    def _used_shapes(self, entries: Entries) -> str:
        """Return the file of the shapes that partitions have."""
        if len({side.get(SHAPES) for side in self._files}) == len(self._shapes.ours) == 1:
            return self._files.ours[SHAPES]
        numbers = self._numbers({name: number for name, (_, number) in entries.items()})
        texts = (text for number in numbers for text in self._read(number).values())
        used = {str(json.loads(text)["shape"]) for text in texts}
        return self._writer.add_blob(pretty({name: self._all_shapes[name] for name in used}))

    def _read(self, number: str) -> dict[str, str]:
        if number not in self._lines:
            texts = self._writer.blob(number).decode().split("\n")
            self._lines[number] = {json.loads(text)["name"]: text for text in texts if text}
        return self._lines[number]

    def _numbers(self, files: Folders) -> set[str]:
        return diff.ranges_of(self._writer, files)

    def _tree(self, number: str | None) -> Folders:
        return self._writer.tree(number) if number else {}

    def _read_document(self, number: str | None) -> Mapping[str, Any]:
        return dict(json.loads(self._writer.blob(number))) if number else {}

    def _blob(self, texts: Iterable[str]) -> str:
        return self._writer.add_blob("".join(f"{text}\n" for text in texts).encode())


def _same_names(trees: Three[Folders]) -> bool:
    """Return whether files begin at the same partitions on all sides."""
    return trees.base.keys() == trees.ours.keys() == trees.theirs.keys()
