"""Rewrite the locations in a commit for another cluster, or clone a database under another name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.catalog import build
from lakehouse.catalog.documents import Document, digest, line, pretty, table_format
from lakehouse.catalog.names import Name, escaped
from lakehouse.catalog.restoring import SELF_DESCRIBED, TRANSACTIONAL, Operation, Step, is_transactional
from lakehouse.catalog.shared_files import SHARED
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Writer
from lakehouse.errors import UsageError

_LINES = ".jsonl"
_NEW = re.compile(r"[a-z0-9_]+")
_DATABASE = "database.json"
_SECOND = "two tables of {} on the same files"
# A DROP of a cloned table keeps the files, which belong to the original; the metastore allows shared files.
_SHARED_PARAMETERS = {"EXTERNAL": "TRUE", "external.table.purge": "FALSE", SHARED: "true"}
# Converts a document in a file of this name.
_Change = Callable[[str, Document], Document]


@dataclass(frozen=True)
class Rule:
    """Replace the prefix `old` of a location by `new`."""

    old: str
    new: str

    def __call__(self, place: str) -> str:
        """Return the new location; a location outside of the prefix is unchanged."""
        if place == self.old or place.startswith(f"{self.old}/"):
            return f"{self.new}{place.removeprefix(self.old)}"
        return place


def rule(text: str) -> Rule:
    """Parse a rule such as hdfs://old/lakehouse=hdfs://new/lakehouse."""
    old, _, new = (part.rstrip("/") for part in text.partition("="))
    if not old or not new or "://" not in old or "://" not in new:
        raise UsageError(f"--rewrite {text}: FROM=TO, as in hdfs://old/lakehouse=hdfs://new/lakehouse")
    return Rule(old, new)


def moved(writer: Writer, tree: str, rules: Sequence[Rule]) -> str:
    """Return the tree with each location rewritten by the first rule that matches."""

    def rewrite(value: Any) -> Any:
        if isinstance(value, str):
            return next((new for rule in rules if (new := rule(value)) != value), value)
        if isinstance(value, dict):
            return {key: rewrite(item) for key, item in value.items()}
        return [rewrite(item) for item in value] if isinstance(value, list) else value

    roots = writer.tree(tree)
    catalog = _Copy(writer, lambda _, document: rewrite(dict(document))).folder(roots[build.CATALOG])
    return build.folder(writer, {**roots, build.CATALOG: catalog})


def cloned(writer: Writer, tree: str, database: Name, clone: str) -> tuple[str, list[Step]]:
    """Return the tree with a clone of a database on the same files, and a step for each table it lacks.

    The clone lacks tables of Iceberg and Delta: their files describe the table, and Trino's DROP of a second
    one removes them. It also lacks Hive's ACID tables: a second one would see no row. Raises UsageError if
    there is no such database, or there is one with the name of the clone.
    """

    def change(file: str, document: Document) -> Document:
        if file == _DATABASE and document.get("location"):
            return {**document, "location": _sibling(str(document["location"]), clone)}
        return _cloned_table(document, database, clone) if file == build.TABLE else document

    *path, last = (build.CATALOG, *database.path)
    folders = [dict(writer.tree(tree))]
    for word in path:
        number = folders[-1].get(word)
        folders.append(dict(writer.tree(number)) if number else {})
    databases = folders[-1]
    if not _NEW.fullmatch(clone):
        raise UsageError(f"--as {clone}: small letters, digits and _ alone")
    if last not in databases:
        raise UsageError(f"{database} is no database of the commit")
    if escaped(clone) in databases:
        raise UsageError(f"--as {clone}: the commit has a database of that name")
    skipped = [
        Step(Operation.LEAVE, "table", replace(name, database=clone), after=document, why=why)
        for name, document in SnapshotReader(writer, tree).tables_in(database)
        if (why := _why_not_cloned(document))
    ]
    skipped_files = {escaped(step.name.table) for step in skipped}
    source = dict(writer.tree(databases[last]))
    if folder := source.pop("table", None):
        tables = {file: number for file, number in writer.tree(folder).items() if file not in skipped_files}
        source |= {"table": build.folder(writer, tables)} if tables else {}
    databases[escaped(clone)] = _Copy(writer, change).folder(build.folder(writer, source))
    for word, parent, child in reversed([*zip(path, folders, folders[1:], strict=False)]):
        parent[word] = build.folder(writer, child)
    return build.folder(writer, folders[0]), skipped


def _why_not_cloned(table: Document) -> str:
    """Return why a table cannot exist under a second name; empty if it can."""
    if (format_ := table_format(table)) in SELF_DESCRIBED:
        return _SECOND.format(format_)
    return TRANSACTIONAL if is_transactional(table) else ""


def _sibling(place: str, database: str) -> str:
    """Return the folder of a database in the same parent folder as another one."""
    parent, _, last = place.rpartition("/")
    return f"{parent}/{database}{'.db' if last.endswith('.db') else ''}"


def _cloned_table(table: Document, database: Name, clone: str) -> Document:
    copy = dict(table)
    if table_format(table) != "view":
        copy |= {
            "type": "EXTERNAL_TABLE",
            "parameters": {**table.get("parameters", {}), **_SHARED_PARAMETERS},
        }
    for row in copy.get("constraints", ()):
        # Names of constraints are unique in a metastore.
        row["name"] = f"{clone}_{row['name']}"
        if row.get("references") and row["references"][1] == database.database:
            row["references"] = [row["references"][0], clone, *row["references"][2:]]
    return copy


@dataclass(frozen=True)
class _Copy:
    """Copies a folder recursively, with a change of each document."""

    writer: Writer
    change: _Change

    def folder(self, number: str, shapes: Mapping[str, str] | None = None) -> str:
        """Return the id of the copy; `shapes` are the new names of the shapes of partitions in it."""
        entries, copy = dict(self.writer.tree(number)), {}
        if shapes_file := entries.pop(build.SHAPES, None):
            shapes, copy[build.SHAPES] = self._shapes(shapes_file)
        for file, child in entries.items():
            if build.is_folder(file):
                copy[file] = self.folder(child, shapes)
            elif file.endswith(_LINES):
                copy[file] = self._lines(child, shapes or {})
            else:
                copy[file] = self._document(file, child)
        return build.folder(self.writer, copy)

    def _document(self, file: str, number: str) -> str:
        return self.writer.add_blob(pretty(self.change(file, json.loads(self.writer.blob(number)))))

    def _shapes(self, number: str) -> tuple[dict[str, str], str]:
        """Return the new name of each shape, which is its digest, and the id of the copied file."""
        shapes = json.loads(self.writer.blob(number)).items()
        changed = {old: dict(self.change(build.SHAPES, shape)) for old, shape in shapes}
        names = {old: digest(line(shape)) for old, shape in changed.items()}
        return names, self.writer.add_blob(pretty({names[old]: shape for old, shape in changed.items()}))

    def _lines(self, number: str, shapes: Mapping[str, str]) -> str:
        texts = []
        for text in self.writer.blob(number).splitlines():
            partition = dict(self.change(build.PARTITIONS, json.loads(text)))
            shape = {"shape": shapes[partition["shape"]]} if "shape" in partition else {}
            texts.append(line(partition | shape))
        return self.writer.add_blob("".join(f"{text}\n" for text in texts).encode())
