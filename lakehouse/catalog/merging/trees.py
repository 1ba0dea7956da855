"""Trees of two commits become one: what only one side has changed is taken as it is, and never read."""

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
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Writer

Ids = Three[str | None]
Files = Mapping[str, str]
_KEYS = "partition_keys"
# Makes one of what both sides have under a name in a folder.
Below = Callable[[str, Ids], str | None]


@dataclass(frozen=True)
class Merged:
    """A tree, and what neither side alone decides: the tree has there what was chosen, or else ours."""

    tree: str
    conflicts: tuple[Conflict, ...]


def merge(writer: Writer, trees: Three[str | None], choice: Choice) -> Merged:
    """Return the tree that two commits' trees become; no base is one in which there was nothing.

    Raises LakehouseError for one that was made in another form.
    """
    for tree in trees:
        if tree:
            Past(writer, tree)
    walk = _Walk(writer, trees, choice)
    roots = trees.each(walk.entries)
    catalog = walk.catalogs(at(roots, build.CATALOG, None))
    statistics = replaced(writer, at(roots, build.STATISTICS, None), walk.taken)
    found = {build.CATALOG: catalog, build.STATISTICS: statistics}
    tree = build.folder(writer, {name: number for name, number in found.items() if number})
    tree, unfit = _fitting(writer, trees, tree, choice.side or Side.OURS)
    tree = counted.without_columns(writer, trees, tree)
    conflicts = sorted((*walk.conflicts, *unfit), key=lambda one: (one.name, one.clash.field))
    return Merged(tree, tuple(conflicts))


def _fitting(writer: Writer, trees: Three[str | None], tree: str, side: Side) -> tuple[str, list[Conflict]]:
    """Return a merged tree whose objects fit together, and what did not: that is as a side has it."""
    conflicts: list[Conflict] = []
    done: set[Name] = set()
    while found := references.misfits(writer, trees, tree):
        names = {name for one in found for name in one.names}
        if not conflicts:
            conflicts = [_unfit(_kind(one.name), one) for one in found]
        if names <= done:
            break
        done |= names
        tree = _as_on(writer, tree, trees.of(side), names)
    return tree, conflicts


def _unfit(kind: str, one: Misfit) -> Conflict:
    return Conflict(kind, one.name, Clash(one.field, Three(None, None, None), one.why))


def _kind(name: Name) -> str:
    return "table" if name.table else "function" if name.function else "database"


def _as_on(writer: Writer, tree: str, side: str | None, names: Collection[Name]) -> str:
    """Return a tree in which some objects, with their statistics, are as in another one."""
    here, other = (references.Catalog(writer, one) for one in (tree, side))
    # An object whose database one of the two does not have comes and goes with that.
    above = {name: Name(name.catalog, name.database) for name in names}
    paths = {
        (name if here.has(above[name]) and other.has(above[name]) else above[name]).path for name in names
    }
    roots = Three[Files]({}, writer.tree(tree), writer.tree(side) if side else {})
    found = {
        part: replaced(writer, at(roots, part, None), paths) for part in (build.CATALOG, build.STATISTICS)
    }
    return build.folder(writer, {part: number for part, number in found.items() if number})


@dataclass
class _Walk:
    """Goes down three trees at once, into what both sides have changed."""

    writer: Writer
    trees: Three[str | None]
    choice: Choice
    conflicts: list[Conflict] = field(default_factory=list)
    # Where the merged tree has what theirs has, and ours has not: statistics go with that.
    taken: list[tuple[str, ...]] = field(default_factory=list)

    def catalogs(self, ids: Ids) -> str | None:
        """Merge the folder `catalog/`; return its id."""
        return self._folder((), ids, self._top)

    def entries(self, number: str | None) -> Files:
        """Return a folder; an empty one for none."""
        return self.writer.tree(number) if number else {}

    def _top(self, file: str, ids: Ids) -> str | None:
        if build.is_folder(file):
            return self._object(Name(plain(file)), ids, self._catalog)
        return self._document("access" if file == build.ACCESS else "format", Name(), ids)

    def _catalog(self, name: Name, ids: Ids) -> str | None:
        def database(file: str, one: Ids) -> str | None:
            return self._object(replace(name, database=plain(file)), one, self._database)

        return self._parts("catalog", name, ids, {"db": database})

    def _database(self, name: Name, ids: Ids) -> str | None:
        def table(file: str, one: Ids) -> str | None:
            return self._object(replace(name, table=plain(file)), one, self._table)

        def function(file: str, one: Ids) -> str | None:
            own = replace(name, function=plain(file.removesuffix(".json")))
            return self._object(own, one, partial(self._document, "function"))

        return self._parts("database", name, ids, {"table": table, "function": function})

    def _table(self, name: Name, ids: Ids) -> str | None:
        files = ids.each(self.entries)
        said = at(files, build.TABLE, None).each(self._said)
        partitions = files.each(lambda own: {file: own[file] for file in NAMES if file in own})
        if clash := _other_keys(said, partitions):
            return self._chosen(Conflict("table", name, clash), ids)
        document = self._document("table", name, at(files, build.TABLE, None))

        def decide(partition: str, one: Three[Document | None]) -> Document | None:
            return self._partition(replace(name, partition=partition), one)

        made = (
            Partitions(self.writer, partitions, decide).merged()
            if partitions.apart
            else {file: (build.is_folder(file), number) for file, number in partitions.clean.items()}
        )
        return self.writer.add_tree(made | ({build.TABLE: (False, document)} if document else {}))

    def _partition(self, name: Name, said: Three[Document | None]) -> Document | None:
        if said.ours is None or said.theirs is None:
            return self._dropped(name, said)
        found, clashes = documents.merged(said, self.choice)
        self.conflicts += [Conflict("partition", name, one) for one in clashes]
        unfit = references.of_partition(name, Three(said.base or {}, said.ours, said.theirs), found)
        self.conflicts += [_unfit("partition", one) for one in unfit]
        return said.of(self.choice.side) if unfit else found

    def _object(self, name: Name, ids: Ids, inside: Callable[[Name, Ids], str | None]) -> str | None:
        """Merge what may be gone on one side, and be another one on the other."""
        if ids.ours and ids.theirs:
            return inside(name, ids)
        return self._dropped(name, ids)

    def _document(self, kind: str, name: Name, ids: Ids) -> str | None:
        if not self._is_open(ids):
            return ids.clean
        said = ids.each(self._said)
        found, clashes = documents.merged(said, self.choice)
        own = "view" if kind == "table" and table_format(found) == "view" else kind
        self.conflicts += [Conflict(own, name, one) for one in clashes]
        return self.writer.add_blob(pretty(found))

    def _dropped(self, name: Name, values: Three[T | None]) -> T | None:
        """Return what becomes of an object that one side has dropped, and the other one has changed."""
        told = [
            "dropped" if value is None else screen.summary([one for one in changes if name.holds(one.name)])
            for value, changes in zip(values[1:], self._changes, strict=True)
        ]
        if "" in told:
            # It was made again as it was.
            return None
        # One side says of it that it was removed, and so what it was.
        kind = next((one.kind for side in self._changes for one in side if one.name == name), "object")
        return self._chosen(Conflict(kind, name, Clash(kind, Three("there", *told))), values)

    @cached_property
    def _changes(self) -> tuple[list[Change], list[Change]]:
        """What each side has changed."""
        base, *sides = self.trees
        ours, theirs = (list(diff.changes(self.writer, base, side)) if side else [] for side in sides)
        return ours, theirs

    def _chosen(self, conflict: Conflict, values: Three[T]) -> T:
        self.conflicts.append(conflict)
        return values.of(self.choice.side)

    def _parts(self, kind: str, name: Name, ids: Ids, inside: Mapping[str, Below]) -> str | None:
        """Merge the folder of an object: its document, and folders of what is in it."""

        def part(file: str, one: Ids) -> str | None:
            if build.is_folder(file):
                return self._folder((*name.path, file), one, inside[file])
            return self._document(kind, name, one)

        return self._folder(name.path, ids, part)

    def _folder(self, place: tuple[str, ...], ids: Ids, below: Below) -> str | None:
        """Merge folders name by name, those that only one side has changed unread; None for an empty one."""
        folders = ids.each(self.entries)
        made: dict[str, str] = {}
        for file in sorted({name for one in folders for name in one}):
            one = at(folders, file, None)
            number = below(file, one) if self._is_open(one) else one.clean
            if number:
                made[file] = number
            if one.ours != number == one.theirs:
                self.taken.append((*place, file))
        return build.folder(self.writer, made) if made else None

    def _is_open(self, ids: Ids) -> bool:
        """Tell whether it takes a look into an object to know what it becomes."""
        # Of what theirs alone has changed, ours still has the state of the files.
        return ids.apart or (not self.choice.data and None not in ids and ids.theirs != ids.ours == ids.base)

    def _said(self, number: str | None) -> Document | None:
        return dict(json.loads(self.writer.blob(number))) if number else None


def _other_keys(said: Three[Document | None], partitions: Three[Files]) -> Clash | None:
    """Return the clash of a table that has other keys on one side, and other partitions on the other one."""
    keys = said.each(lambda one: [(key["name"], key["type"]) for key in (one or {}).get(_KEYS, ())])
    if keys.ours == keys.theirs:
        return None
    # Every change of partitions was made by the side that has changed the keys.
    states = Three(*zip(keys, partitions, strict=True))
    if said.base is not None and not states.apart:
        return None
    return Clash(_KEYS.replace("_", " "), said.each(lambda one: (one or {}).get(_KEYS)))
