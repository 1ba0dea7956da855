"""Merge the trees of two commits; the parts that only one side has changed are copied without reading."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from lakehouse.catalog import build, diff
from lakehouse.catalog import text as screen
from lakehouse.catalog.diff import Change
from lakehouse.catalog.documents import Document, pretty, table_format
from lakehouse.catalog.merging import counted, documents, references
from lakehouse.catalog.merging.folders import replaced
from lakehouse.catalog.merging.partitions import NAMES, Partitions
from lakehouse.catalog.merging.references import Misfit
from lakehouse.catalog.merging.sides import Choice, Clash, Conflict, Side, T, Three, at
from lakehouse.catalog.names import Name, plain
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Writer

Ids = Three[str | None]
Files = Mapping[str, str]
_KEYS = "partition_keys"
# Merges an entry of a folder, by its name and ids.
MergeEntry = Callable[[str, Ids], str | None]


@dataclass(frozen=True)
class Merged:
    """A merged tree, and its conflicts, for which it has the chosen side, or else ours."""

    tree: str
    conflicts: tuple[Conflict, ...]


def merge(writer: Writer, trees: Three[str | None], choice: Choice) -> Merged:
    """Merge the trees of two commits; the base is None for an empty one.

    Raises LakehouseError for a tree in an unsupported format.
    """
    for tree in trees:
        if tree:
            SnapshotReader(writer, tree)
    walk = _Walk(writer, trees, choice)
    roots = trees.each(walk.entries)
    catalog = walk.catalogs(at(roots, build.CATALOG, None))
    statistics = replaced(writer, at(roots, build.STATISTICS, None), walk.paths_of_theirs)
    parts = {build.CATALOG: catalog, build.STATISTICS: statistics}
    tree = build.folder(writer, {name: number for name, number in parts.items() if number})
    tree, inconsistencies = _without_misfits(writer, trees, tree, choice.side or Side.OURS)
    tree = counted.without_columns(writer, trees, tree)
    conflicts = sorted(
        (*walk.conflicts, *inconsistencies), key=lambda conflict: (conflict.name, conflict.clash.field)
    )
    return Merged(tree, tuple(conflicts))


def _without_misfits(
    writer: Writer, trees: Three[str | None], tree: str, side: Side
) -> tuple[str, list[Conflict]]:
    """Return a consistent merged tree, which has inconsistent objects from a side, and their conflicts."""
    conflicts: list[Conflict] = []
    replaced_names: set[Name] = set()
    while misfits := references.misfits(writer, trees, tree):
        names = {name for misfit in misfits for name in misfit.names}
        if not conflicts:
            conflicts = [_inconsistency(_kind(misfit.name), misfit) for misfit in misfits]
        if names <= replaced_names:
            break
        replaced_names |= names
        tree = _with_objects_of(writer, tree, trees.of(side), names)
    return tree, conflicts


def _inconsistency(kind: str, misfit: Misfit) -> Conflict:
    return Conflict(kind, misfit.name, Clash(misfit.field, Three(None, None, None), misfit.why))


def _kind(name: Name) -> str:
    return "table" if name.table else "function" if name.function else "database"


def _with_objects_of(writer: Writer, tree: str, side: str | None, names: Collection[Name]) -> str:
    """Return a tree with some objects, and their statistics, of another tree."""
    catalogs = [references.Catalog(writer, number) for number in (tree, side)]
    # If one of the trees lacks the database of an object, the whole database is replaced.
    databases = {name: Name(name.catalog, name.database) for name in names}
    paths = {
        (name if all(catalog.has(databases[name]) for catalog in catalogs) else databases[name]).path
        for name in names
    }
    roots = Three[Files]({}, writer.tree(tree), writer.tree(side) if side else {})
    parts = {
        part: replaced(writer, at(roots, part, None), paths) for part in (build.CATALOG, build.STATISTICS)
    }
    return build.folder(writer, {part: number for part, number in parts.items() if number})


@dataclass
class _Walk:
    """Merges three trees recursively, reading the parts that both sides have changed."""

    writer: Writer
    trees: Three[str | None]
    choice: Choice
    conflicts: list[Conflict] = field(default_factory=list)
    # The paths at which the merged tree has the entry of theirs: their statistics are copied too.
    paths_of_theirs: list[tuple[str, ...]] = field(default_factory=list)

    def catalogs(self, ids: Ids) -> str | None:
        """Merge the folder `catalog/`; return its id."""
        return self._folder((), ids, self._top)

    def entries(self, number: str | None) -> Files:
        """Return the entries of a folder; none for None."""
        return self.writer.tree(number) if number else {}

    def _top(self, file: str, ids: Ids) -> str | None:
        if build.is_folder(file):
            return self._object(Name(plain(file)), ids, self._catalog)
        return self._document("access" if file == build.ACCESS else "format", Name(), ids)

    def _catalog(self, name: Name, ids: Ids) -> str | None:
        def database(file: str, database_ids: Ids) -> str | None:
            return self._object(replace(name, database=plain(file)), database_ids, self._database)

        return self._parts("catalog", name, ids, {"db": database})

    def _database(self, name: Name, ids: Ids) -> str | None:
        def table(file: str, table_ids: Ids) -> str | None:
            return self._object(replace(name, table=plain(file)), table_ids, self._table)

        def function(file: str, function_ids: Ids) -> str | None:
            function_name = replace(name, function=plain(file.removesuffix(".json")))
            return self._object(function_name, function_ids, partial(self._document, "function"))

        return self._parts("database", name, ids, {"table": table, "function": function})

    def _table(self, name: Name, ids: Ids) -> str | None:
        files = ids.each(self.entries)
        tables = at(files, build.TABLE, None).each(self._read_document)
        partitions = files.each(lambda side: {file: side[file] for file in NAMES if file in side})
        if clash := _key_clash(tables, partitions):
            return self._chosen(Conflict("table", name, clash), ids)
        document = self._document("table", name, at(files, build.TABLE, None))

        def decide(partition: str, sides: Three[Document | None]) -> Document | None:
            return self._partition(replace(name, partition=partition), sides)

        entries = (
            Partitions(self.writer, partitions, decide).merged()
            if partitions.apart
            else {file: (build.is_folder(file), number) for file, number in partitions.clean.items()}
        )
        return self.writer.add_tree(entries | ({build.TABLE: (False, document)} if document else {}))

    def _partition(self, name: Name, sides: Three[Document | None]) -> Document | None:
        if sides.ours is None or sides.theirs is None:
            return self._dropped(name, sides)
        merged, clashes = documents.merged(sides, self.choice)
        self.conflicts += [Conflict("partition", name, clash) for clash in clashes]
        misfits = references.of_partition(name, Three(sides.base or {}, sides.ours, sides.theirs), merged)
        self.conflicts += [_inconsistency("partition", misfit) for misfit in misfits]
        return sides.of(self.choice.side) if misfits else merged

    def _object(self, name: Name, ids: Ids, merge_both: Callable[[Name, Ids], str | None]) -> str | None:
        """Merge an object that both sides have; otherwise one side has dropped it."""
        if ids.ours and ids.theirs:
            return merge_both(name, ids)
        return self._dropped(name, ids)

    def _document(self, kind: str, name: Name, ids: Ids) -> str | None:
        if not self._is_open(ids):
            return ids.clean
        merged, clashes = documents.merged(ids.each(self._read_document), self.choice)
        shown_kind = "view" if kind == "table" and table_format(merged) == "view" else kind
        self.conflicts += [Conflict(shown_kind, name, clash) for clash in clashes]
        return self.writer.add_blob(pretty(merged))

    def _dropped(self, name: Name, values: Three[T | None]) -> T | None:
        """Resolve an object that one side has dropped, and the other one has changed."""
        summaries = [
            "dropped"
            if value is None
            else screen.summary([change for change in changes if name.holds(change.name)])
            for value, changes in zip(values[1:], self._changes, strict=True)
        ]
        if "" in summaries:
            # The other side has dropped it and created it again, without a difference.
            return None
        # The changes of one side have its removal, with its kind.
        kinds = (change.kind for side in self._changes for change in side if change.name == name)
        kind = next(kinds, "object")
        return self._chosen(Conflict(kind, name, Clash(kind, Three("there", *summaries))), values)

    @cached_property
    def _changes(self) -> tuple[list[Change], list[Change]]:
        """The changes of each side."""
        base, *sides = self.trees
        ours, theirs = (list(diff.changes(self.writer, base, side)) if side else [] for side in sides)
        return ours, theirs

    def _chosen(self, conflict: Conflict, values: Three[T]) -> T:
        self.conflicts.append(conflict)
        return values.of(self.choice.side)

    def _parts(self, kind: str, name: Name, ids: Ids, merge_child: Mapping[str, MergeEntry]) -> str | None:
        """Merge the folder of an object: its document, and the folders of its children."""

        def part(file: str, part_ids: Ids) -> str | None:
            if build.is_folder(file):
                return self._folder((*name.path, file), part_ids, merge_child[file])
            return self._document(kind, name, part_ids)

        return self._folder(name.path, ids, part)

    def _folder(self, path: tuple[str, ...], ids: Ids, merge_entry: MergeEntry) -> str | None:
        """Merge folders entry by entry; None for an empty one."""
        folders = ids.each(self.entries)
        merged: dict[str, str] = {}
        for file in sorted({name for folder in folders for name in folder}):
            entry_ids = at(folders, file, None)
            number = merge_entry(file, entry_ids) if self._is_open(entry_ids) else entry_ids.clean
            if number:
                merged[file] = number
            if entry_ids.ours != number == entry_ids.theirs:
                self.paths_of_theirs.append((*path, file))
        return build.folder(self.writer, merged) if merged else None

    def _is_open(self, ids: Ids) -> bool:
        """Return whether an entry has to be read for the merge."""
        # Without `data`, an object that only theirs has changed keeps our state of the files.
        return ids.apart or (not self.choice.data and None not in ids and ids.theirs != ids.ours == ids.base)

    def _read_document(self, number: str | None) -> Document | None:
        return dict(json.loads(self.writer.blob(number))) if number else None


def _key_clash(tables: Three[Document | None], partitions: Three[Files]) -> Clash | None:
    """Return the clash of a table with other keys on one side, and other partitions on the other one."""
    keys = tables.each(lambda table: [(key["name"], key["type"]) for key in (table or {}).get(_KEYS, ())])
    if keys.ours == keys.theirs:
        return None
    # Without a clash, all changes of partitions are of the side that has changed the keys.
    states = Three(*zip(keys, partitions, strict=True))
    if tables.base is not None and not states.apart:
        return None
    return Clash(_KEYS.replace("_", " "), tables.each(lambda table: (table or {}).get(_KEYS)))
