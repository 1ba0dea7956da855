"""Makes the tree of a commit of what the metastore's database said.

    catalog/access.json                            roles, and privileges on everything
    catalog/format.json                            how this tree is made
    catalog/<catalog>/catalog.json
    catalog/<catalog>/db/<database>/database.json
    .../function/<function>.json
    .../table/<table>/table.json
    .../table/<table>/shapes.json                  how partitions are stored, by a short name
    .../table/<table>/partitions.jsonl             a line for each; of many, partitions/<folder>/<file>.jsonl
    statistics/<catalog>/...                       the same folders, with what is volatile

The id of `catalog/` is the identity of a catalog: statistics are beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from types import MappingProxyType
from typing import Any

from lakehouse.catalog import documents, ranges, schema, splicing
from lakehouse.catalog.documents import (
    FORMAT,
    Document,
    in_order,
    is_volatile,
    line,
    location,
    pretty,
    without_nothing,
)
from lakehouse.catalog.names import Name
from lakehouse.catalog.reading import Stream, document
from lakehouse.catalog.splicing import Lines
from lakehouse.catalog.store import Writer
from lakehouse.errors import LakehouseError

CATALOG, STATISTICS = "catalog", "statistics"
ACCESS, SETTINGS = "access.json", "format.json"
TABLE, SHAPES, PARTITIONS, FILES = "table.json", "shapes.json", "partitions.jsonl", "partitions"
# The fields of a partition's row behind its number.
_HEAD, _VALUES, _SHAPE, _PARAMETERS, _VOLATILE, _GRANTS, _COLUMNS = range(1, 8)

# Of the files of some Delta tables, by location: the version of each that could be asked.
Versions = Callable[[Collection[str]], Mapping[str, str]]
Entries = dict[str, tuple[bool, str]]


def no_versions(_: Collection[str]) -> Mapping[str, str]:
    """Return nothing: where no server can be asked."""
    return {}


@dataclass(frozen=True)
class Base:
    """An earlier commit: tables and ranges of partitions are taken over where they have the same marks."""

    tree: str
    marks: Mapping[str, str]


@dataclass(frozen=True)
class Built:
    """A tree, and what is known of the database at that moment."""

    tree: str
    identity: str
    about: Mapping[str, Any]
    strangers: tuple[schema.Stranger, ...]
    # Marks of the tables that need not be read again while they keep them.
    marks: Mapping[str, str]
    counts: Mapping[str, int]
    # Delta tables of which no version could be had.
    unversioned: tuple[str, ...] = ()

    @property
    def event(self) -> int | None:
        """The last event of the notification log; None where no listener writes one."""
        return int(self.about["event"]) if self.about.get("event") else None


class StaleError(LakehouseError):
    """A table that has not changed is somewhere else than it was: everything is to be read."""


@dataclass
class Folder:
    """A folder that is being made: files and folders by name."""

    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Folder | str] = field(default_factory=dict)

    def at(self, path: Iterable[str]) -> Folder:
        """Return the folder of a path, made where it is not there."""
        here = self
        for word in path:
            found = here.folders.setdefault(word, Folder())
            if isinstance(found, str):
                raise TypeError(f"{word} is whole already")
            here = found
        return here

    def put(self, path: tuple[str, ...], number: str, *, folder: bool = False) -> None:
        """Put a file there, or a folder that is whole."""
        parent = self.at(path[:-1])
        if folder:
            parent.folders[path[-1]] = number
        else:
            parent.files[path[-1]] = number

    def made(self, writer: Writer) -> str:
        """Write everything; return the id of the folder."""
        entries: Entries = {name: (False, number) for name, number in self.files.items()}
        for name, below in self.folders.items():
            entries[name] = (True, below if isinstance(below, str) else below.made(writer))
        return writer.add_tree(entries)


@dataclass(frozen=True)
class _Row:
    """A table as read: its document, and its statistics."""

    document: dict[str, Any]
    statistics: dict[str, Any]


def build(
    stream: Stream, writer: Writer, base: Base | None = None, versions: Versions = no_versions
) -> Built:
    """Read a stream to its end and make the tree of it.

    Raises LakehouseError where the stream is cut off, or the database is none of Hive Metastore 3.1.3's.
    """
    [about] = stream.rows("about")
    found = [
        schema.Found(name, tuple(columns or ()), bool(used)) for name, columns, used in stream.rows("schema")
    ]
    if lost := schema.missing(found):
        raise LakehouseError(
            f"the database is no metastore that can be read: it has no {', '.join(lost[:3])}"
            f"{' ...' if len(lost) > 3 else ''} (schema {about['schema'] or 'unknown'})",  # noqa: PLR2004
            ".venv/bin/lakehouse doctor",
        )
    [marks] = stream.rows("marks")
    root = Folder()
    catalog = root.at([CATALOG])
    counts = _small(stream, catalog, writer)
    names = {number: (Name(*words), partitions) for number, *words, partitions in stream.rows("names")}
    lists = {
        int(row.split(b"\t", 1)[0]): document(row.split(b"\t", 1)[1]) for row in stream.section("columns")
    }
    rows = dict(_tables(stream.section("tables"), lists))
    made = _Partitions(root, writer, lists)
    unread = _known(base, marks)
    for number, lines in _grouped(stream.section("partitions")):
        if number not in names:
            raise LakehouseError(
                f"the database has partitions of a table that is not there (TBL_ID {number})",
                ".venv/bin/lakehouse doctor",
            )
        made.put(names[number][0], lines, unread.pop(number, None))
    stream.end()
    # Of these no partition had to be read.
    for number in rows.keys() & unread.keys():
        made.put(names[number][0], iter(()), unread[number])
    # The transaction has ended: no query waits for a file system in it.
    delta = {number: place for number, row in rows.items() if (place := _delta_place(row.document))}
    known = versions(sorted(set(delta.values())))
    for number, place in delta.items():
        if place in known:
            rows[number].document["data"]["version"] = known[place]
    for number, row in rows.items():
        path = names[number][0].path
        root.put((CATALOG, *path, TABLE), writer.add_blob(pretty(row.document)))
        if row.statistics:
            root.put((STATISTICS, *path, TABLE), writer.add_blob(pretty(row.statistics)))
    if base is not None:
        _take_over(root, writer, base, [name for number, (name, _) in names.items() if number not in rows])
    tree = root.made(writer)
    return Built(
        tree=tree,
        identity=writer.tree(tree)[CATALOG],
        about=about,
        strangers=tuple(schema.strangers(found)),
        # The version of a Delta table is nothing that the database knows: it is looked up each time.
        marks={number: mark for number, mark in marks.items() if number not in delta},
        counts=counts
        | {
            "tables": len(names),
            "partitions": sum(partitions for _, partitions in names.values()),
            "read": len(rows),
        },
        unversioned=tuple(
            sorted(str(names[number][0]) for number, place in delta.items() if place not in known)
        ),
    )


def settings() -> bytes:
    """Return the file that says how a tree is made."""
    return pretty(
        {
            "format": FORMAT,
            "volatile": [*documents.VOLATILE, *(f"{one}*" for one in documents.VOLATILE_PREFIXES)],
        }
    )


def is_folder(file: str) -> bool:
    """Tell by its name whether something in a tree is a folder: the name of an object has no dot."""
    return "." not in file


def folder(writer: Writer, ids: Mapping[str, str]) -> str:
    """Keep a folder of what is kept already, by name; return its id."""
    return writer.add_tree({name: (is_folder(name), number) for name, number in ids.items()})


def _small(stream: Stream, catalog: Folder, writer: Writer) -> dict[str, int]:
    """Put everything that is no table; return how many there are of each."""
    [access] = stream.rows("access")
    roles = [one | {"members": _sorted(one["members"])} for one in access["roles"] or ()]
    everywhere = {"roles": _sorted(roles), "privileges": _sorted(access["privileges"])}
    catalog.files[SETTINGS] = writer.add_blob(settings())
    catalog.files[ACCESS] = writer.add_blob(pretty(without_nothing(everywhere)))
    counts = dict.fromkeys(("catalogs", "databases", "functions"), 0)
    for name, said in stream.rows("catalogs"):
        catalog.put((*Name(name).path, "catalog.json"), writer.add_blob(pretty(without_nothing(said))))
        counts["catalogs"] += 1
    for owner, name, said in stream.rows("databases"):
        whole = without_nothing(said | {"privileges": _sorted(said["privileges"])})
        catalog.put((*Name(owner, name).path, "database.json"), writer.add_blob(pretty(whole)))
        counts["databases"] += 1
    for owner, database, name, said in stream.rows("functions"):
        path = Name(owner, database, function=name).path
        catalog.put(path, writer.add_blob(pretty(without_nothing(said))))
        counts["functions"] += 1
    return counts


def _tables(rows: Iterable[bytes], lists: Mapping[int, list[Any]]) -> Iterator[tuple[str, _Row]]:
    for row in rows:
        number, text = row.split(b"\t", 1)
        said, parameters, access, location, columns, shape, statistics = document(text)
        parameters = parameters or {}
        whole = without_nothing(
            {
                **said,
                "partition_keys": [without_nothing(one) for one in said["partition_keys"] or ()],
                "constraints": _sorted(said["constraints"]),
                "privileges": _sorted(said["privileges"]),
                "parameters": {key: value for key, value in parameters.items() if not is_volatile(key)},
                "storage": without_nothing({**_shape(shape, lists.get(columns)), "location": location}),
            }
        )
        if version := documents.data(whole):
            whole["data"] = version
        volatile = {key: value for key, value in parameters.items() if is_volatile(key)}
        yield (
            number.decode(),
            _Row(
                whole,
                without_nothing(
                    {"parameters": volatile, "last_access": access, "columns": _counted(statistics)}
                ),
            ),
        )


def _shape(said: Document | None, columns: list[Any] | None) -> dict[str, Any]:
    """Return how something is stored, without its location."""
    if said is None:
        return {}
    listed = [without_nothing(column) for column in columns or ()]
    serde = without_nothing(said["serde"]) if said["serde"] else None
    return without_nothing(
        {**said, "serde": serde, "columns": listed, "skewed_locations": _sorted(said["skewed_locations"])}
    )


def _sorted(found: list[Any] | None) -> list[Any]:
    """Return a list that has no order of its own, without what says nothing in it."""
    return in_order(without_nothing(one) if isinstance(one, dict) else one for one in found or ())


def _counted(found: list[Any] | None) -> list[Any]:
    """Return statistics of columns, without what is unknown: zero is a number like others."""
    kept = ({key: value for key, value in one.items() if value is not None} for one in found or ())
    return sorted(kept, key=line)


def _delta_place(said: Document) -> str | None:
    """Return where the files of a Delta table are, unless the metastore knows its version."""
    if said.get("data", {}).get("format") != "delta" or "version" in said["data"]:
        return None
    return location(said)


def _grouped(rows: Iterable[bytes]) -> Iterator[tuple[str, Iterator[list[bytes]]]]:
    fields = (row.split(b"\t") for row in rows)
    for number, group in groupby(fields, key=lambda row: row[0]):
        yield number.decode(), group


@dataclass(frozen=True)
class _Known:
    """An earlier commit's tree, and by their digests the ranges of a table that are as they were in it."""

    tree: str
    same: frozenset[str]


def _known(base: Base | None, marks: Mapping[str, str]) -> dict[str, _Known]:
    """Return what is known of tables with ranges, by number."""
    found: dict[str, set[str]] = {}
    for key, mark in marks.items():
        number, slash, own = key.partition("/")
        if slash and base and base.marks.get(key) == mark:
            found.setdefault(number, set()).add(own)
    return {number: _Known(base.tree, frozenset(same)) for number, same in found.items() if base}


class _Partitions:
    """Puts the partitions of tables, which come sorted by table and name."""

    def __init__(self, root: Folder, writer: Writer, lists: Mapping[int, list[Any]]) -> None:
        self._root, self._writer, self._lists = root, writer, lists
        # What partitions repeat, by the bytes that came.
        self._shapes: dict[tuple[Any, bytes], tuple[str, dict[str, Any]]] = {}
        self._repeated: dict[bytes, Any] = {}

    def put(self, table: Name, partitions: Iterator[list[bytes]], known: _Known | None = None) -> None:
        """Put the partitions of a table: those that were read, and those that are `known`."""
        shapes: dict[str, Any] = {}
        lines: dict[str, Lines] = {CATALOG: [], STATISTICS: []}
        for row in partitions:
            name, text, statistics = self._partition(row, shapes)
            lines[CATALOG].append((name, text))
            if statistics:
                lines[STATISTICS].append((name, statistics))
        stay = self._spliced(table, known, lines, shapes) if known else dict[str, dict[str, str]]()
        here = self._root.at((CATALOG, *table.path))
        here.files[SHAPES] = self._writer.add_blob(pretty(shapes))
        for part, own in lines.items():
            if own or stay.get(part):
                put_lines(self._root.at((part, *table.path)), self._writer, own, stay.get(part, {}))

    def _spliced(
        self, table: Name, known: _Known, lines: dict[str, Lines], shapes: dict[str, Any]
    ) -> dict[str, dict[str, str]]:
        """Add what is known to lines and shapes; return the folders of each part that stay as they are."""
        writer = self._writer
        before = {part: _below(writer, writer.tree(known.tree).get(part), table.path) for part in lines}
        if FILES not in before[CATALOG]:
            raise StaleError(f"{table} is not in the commit that was built on")
        own = splicing.ranges_of(writer, before[CATALOG][FILES], known.same)
        stay = {}
        for part, files in before.items():
            file = [files[PARTITIONS]] if PARTITIONS in files else []
            lines[part], stay[part] = splicing.spliced(writer, file, files.get(FILES), own, lines[part])
        earlier = json.loads(writer.blob(before[CATALOG][SHAPES]))
        left = earlier.keys() - shapes.keys()
        for short in splicing.used(writer, left, lines[CATALOG], stay[CATALOG].values()):
            shapes[short] = earlier[short]
        return stay

    def _partition(self, row: list[bytes], shapes: dict[str, Any]) -> tuple[str, str, str]:
        name, location, created, access, columns = document(row[_HEAD])
        key = (columns, row[_SHAPE])
        if key not in self._shapes:
            shape = _shape(document(row[_SHAPE]), self._lists.get(columns))
            self._shapes[key] = documents.digest(line(shape)), shape
        short, shape = self._shapes[key]
        shapes[short] = shape
        whole = {
            "name": name,
            "values": document(row[_VALUES]),
            "location": location,
            "created": created,
            "shape": short,
            "parameters": self._once(row[_PARAMETERS]),
            "privileges": _sorted(self._once(row[_GRANTS])),
        }
        volatile = {
            "parameters": document(row[_VOLATILE]),
            "last_access": access,
            "columns": _counted(document(row[_COLUMNS])),
        }
        said = without_nothing(volatile)
        return name, line(without_nothing(whole)), line({"name": name, **said}) if said else ""

    def _once(self, field: bytes) -> Any:
        if field not in self._repeated:
            self._repeated[field] = document(field)
        return self._repeated[field]


def put_lines(
    here: Folder, writer: Writer, lines: Lines, beside: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Put the lines of a table's partitions, sorted by name, into as many files as that takes.

    `beside` are folders of other partitions, whole already.
    """

    def blob(texts: Iterable[str]) -> str:
        return writer.add_blob("".join(f"{one}\n" for one in texts).encode())

    if len(lines) <= ranges.FEW and not beside:
        here.files[PARTITIONS] = blob(text for _, text in lines)
        return
    below = here.at([FILES]).folders
    below |= beside
    for folder, files in ranges.folders(lines):
        entries: Entries = {name: (False, blob(texts)) for name, texts in files}
        below[folder] = writer.add_tree(entries)


def _take_over(root: Folder, writer: Writer, base: Base, names: Iterable[Name]) -> None:
    """Put the folders of tables that have not changed, as they are in an earlier tree."""
    wanted = list(names)
    for part in (CATALOG, STATISTICS):
        earlier = writer.tree(base.tree).get(part)
        below: dict[tuple[str, ...], Mapping[str, str]] = {}
        for name in wanted:
            *folder, last = name.path
            key = tuple(folder)
            if key not in below:
                below[key] = _below(writer, earlier, key)
            if last in below[key]:
                root.put((part, *name.path), below[key][last], folder=True)
            elif part == CATALOG:
                raise StaleError(f"{name} is not in the commit that was built on")


def _below(writer: Writer, tree: str | None, path: Iterable[str]) -> Mapping[str, str]:
    for word in chain(path):
        if tree is None:
            return {}
        tree = writer.tree(tree).get(word)
    return writer.tree(tree) if tree else {}
