"""A commit's objects at other places, or as another database: for a clone, or for another cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.catalog import build
from lakehouse.catalog.documents import Document, digest, line, pretty, table_format
from lakehouse.catalog.names import Name, escaped
from lakehouse.catalog.restoring import SELF_DESCRIBED, TRANSACTIONAL, Deed, Step, is_transactional
from lakehouse.catalog.shared_files import SHARED
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Writer
from lakehouse.errors import UsageError

_LINES = ".jsonl"
_NEW = re.compile(r"[a-z0-9_]+")
_DATABASE = "database.json"
_SECOND = "two tables of {} on the same files"
# A DROP of a clone's table leaves the files, which are the other one's; the metastore lets it share them.
_NOT_OURS = {"EXTERNAL": "TRUE", "external.table.purge": "FALSE", SHARED: "true"}
# Makes another document of one in a file of this name.
_Change = Callable[[str, Document], Document]


@dataclass(frozen=True)
class Rule:
    """Everything below a place is below another one."""

    old: str
    new: str

    def __call__(self, place: str) -> str:
        """Return where a place is by it: unchanged, unless it is that of the rule, or below."""
        if place == self.old or place.startswith(f"{self.old}/"):
            return f"{self.new}{place.removeprefix(self.old)}"
        return place


def rule(text: str) -> Rule:
    """Read a rule as people write it, such as hdfs://old/lakehouse=hdfs://new/lakehouse."""
    old, _, new = (part.rstrip("/") for part in text.partition("="))
    if not old or not new or "://" not in old or "://" not in new:
        raise UsageError(f"--rewrite {text}: FROM=TO, as in hdfs://old/lakehouse=hdfs://new/lakehouse")
    return Rule(old, new)


def moved(writer: Writer, tree: str, rules: Sequence[Rule]) -> str:
    """Return the tree with each place by the first rule that is about it."""

    def value(said: Any) -> Any:
        if isinstance(said, str):
            return next((found for one in rules if (found := one(said)) != said), said)
        if isinstance(said, dict):
            return {key: value(one) for key, one in said.items()}
        return [value(one) for one in said] if isinstance(said, list) else said

    roots = writer.tree(tree)
    catalog = _Copy(writer, lambda _, said: value(dict(said))).folder(roots[build.CATALOG])
    return build.folder(writer, {**roots, build.CATALOG: catalog})


def cloned(writer: Writer, tree: str, database: Name, other: str) -> tuple[str, list[Step]]:
    """Return the tree with another database, which has what is in one, on the same files, and what it lacks.

    It lacks tables of Iceberg and Delta: their files say what they are, and Trino's DROP of a second one
    removes them. It lacks Hive's ACID tables, too: a second one would see no row. Raises UsageError where
    there is no such database, or the other one is there.
    """

    def change(file: str, said: Document) -> Document:
        if file == _DATABASE and said.get("location"):
            return {**said, "location": _beside(str(said["location"]), other)}
        return _not_ours(said, database, other) if file == build.TABLE else said

    *above, own = (build.CATALOG, *database.path)
    folders = [dict(writer.tree(tree))]
    for word in above:
        number = folders[-1].get(word)
        folders.append(dict(writer.tree(number)) if number else {})
    databases = folders[-1]
    if not _NEW.fullmatch(other):
        raise UsageError(f"--as {other}: small letters, digits and _ alone")
    if own not in databases:
        raise UsageError(f"{database} is no database of the commit")
    if escaped(other) in databases:
        raise UsageError(f"--as {other}: the commit has a database of that name")
    left = [
        Step(Deed.LEAVE, "table", replace(name, database=other), then=said, why=why)
        for name, said in Past(writer, tree).every(database)
        if (why := _not_twice(said))
    ]
    out = {escaped(step.name.table) for step in left}
    source = dict(writer.tree(databases[own]))
    if tables := source.pop("table", None):
        kept = {file: one for file, one in writer.tree(tables).items() if file not in out}
        source |= {"table": build.folder(writer, kept)} if kept else {}
    databases[escaped(other)] = _Copy(writer, change).folder(build.folder(writer, source))
    for word, parent, child in reversed([*zip(above, folders, folders[1:], strict=False)]):
        parent[word] = build.folder(writer, child)
    return build.folder(writer, folders[0]), left


def _not_twice(said: Document) -> str:
    """Return why a table cannot be there under a second name; empty where it can."""
    if (found := table_format(said)) in SELF_DESCRIBED:
        return _SECOND.format(found)
    return TRANSACTIONAL if is_transactional(said) else ""


def _beside(place: str, other: str) -> str:
    """Return the folder of another database beside that of one."""
    parent, _, last = place.rpartition("/")
    return f"{parent}/{other}{'.db' if last.endswith('.db') else ''}"


def _not_ours(said: Document, database: Name, other: str) -> Document:
    made = dict(said)
    if table_format(said) != "view":
        made |= {"type": "EXTERNAL_TABLE", "parameters": {**said.get("parameters", {}), **_NOT_OURS}}
    for one in made.get("constraints", ()):
        # No two in a metastore have the same.
        one["name"] = f"{other}_{one['name']}"
        if one.get("references") and one["references"][1] == database.database:
            one["references"] = [one["references"][0], other, *one["references"][2:]]
    return made


@dataclass(frozen=True)
class _Copy:
    """Copies a folder with each document in it, and below, changed."""

    writer: Writer
    change: _Change

    def folder(self, number: str, shapes: Mapping[str, str] | None = None) -> str:
        """Return the id of the copy; `shapes` are the new names of those that partitions below have."""
        entries, made = dict(self.writer.tree(number)), {}
        if own := entries.pop(build.SHAPES, None):
            shapes, made[build.SHAPES] = self._shapes(own)
        for file, one in entries.items():
            if build.is_folder(file):
                made[file] = self.folder(one, shapes)
            elif file.endswith(_LINES):
                made[file] = self._lines(one, shapes or {})
            else:
                made[file] = self._document(file, one)
        return build.folder(self.writer, made)

    def _document(self, file: str, number: str) -> str:
        return self.writer.add_blob(pretty(self.change(file, json.loads(self.writer.blob(number)))))

    def _shapes(self, number: str) -> tuple[dict[str, str], str]:
        """Return the new name of each shape, which is made of what is in it, and the id of the copy."""
        known = json.loads(self.writer.blob(number)).items()
        made = {old: dict(self.change(build.SHAPES, said)) for old, said in known}
        names = {old: digest(line(said)) for old, said in made.items()}
        return names, self.writer.add_blob(pretty({names[old]: said for old, said in made.items()}))

    def _lines(self, number: str, shapes: Mapping[str, str]) -> str:
        texts = []
        for text in self.writer.blob(number).splitlines():
            said = dict(self.change(build.PARTITIONS, json.loads(text)))
            texts.append(line(said | ({"shape": shapes[said["shape"]]} if "shape" in said else {})))
        return self.writer.add_blob("".join(f"{text}\n" for text in texts).encode())
