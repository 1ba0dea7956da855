"""Build the tree of a commit from the output of the metastore's database.

    catalog/access.json                            roles, and privileges on everything
    catalog/format.json                            the version of this layout, and the volatile parameters
    catalog/<catalog>/catalog.json
    catalog/<catalog>/db/<database>/database.json
    .../function/<function>.json
    .../table/<table>/table.json
    .../table/<table>/shapes.json                  how partitions are stored, by a short name
    .../table/<table>/partitions.jsonl             a line for each; of many, partitions/<folder>/<file>.jsonl
    statistics/<catalog>/...                       the same folders, with the volatile part

The id of `catalog/` is the identity of a catalog, which statistics do not change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
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
# The fields of a partition's row behind the number of its table.
_HEAD, _VALUES, _SHAPE, _PARAMETERS, _VOLATILE, _GRANTS, _COLUMNS = range(1, 8)

# Returns the versions of Delta tables by their locations, as far as they are known.
Versions = Callable[[Collection[str]], Mapping[str, str]]
Entries = dict[str, tuple[bool, str]]


def no_versions(_: Collection[str]) -> Mapping[str, str]:
    """Return no version, for a cluster without a file system."""
    return {}


@dataclass(frozen=True)
class Base:
    """An earlier commit, from which tables and ranges of partitions with the same checksums are copied."""

    tree: str
    marks: Mapping[str, str]


@dataclass(frozen=True)
class Built:
    """A tree, and facts about the database at that time."""

    tree: str
    identity: str
    about: Mapping[str, Any]
    strangers: tuple[schema.Stranger, ...]
    # Checksums of the tables that need not be read again while these stay the same.
    marks: Mapping[str, str]
    counts: Mapping[str, int]
    # Delta tables without a known version.
    unversioned: tuple[str, ...] = ()

    @property
    def event(self) -> int | None:
        """The last event of the notification log; None if no listener writes events."""
        return int(self.about["event"]) if self.about.get("event") else None


class StaleError(LakehouseError):
    """The base lacks a table that has not changed since, so everything has to be read."""


@dataclass
class Folder:
    """A folder that is being built: files and folders by name."""

    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Folder | str] = field(default_factory=dict)

    def at(self, path: Iterable[str]) -> Folder:
        """Return the folder of a path, which is created if necessary."""
        folder = self
        for name in path:
            child = folder.folders.setdefault(name, Folder())
            if isinstance(child, str):
                raise TypeError(f"{name} is whole already")
            folder = child
        return folder

    def put(self, path: tuple[str, ...], number: str, *, folder: bool = False) -> None:
        """Add a file, or a complete folder, by its id."""
        parent = self.at(path[:-1])
        if folder:
            parent.folders[path[-1]] = number
        else:
            parent.files[path[-1]] = number

    def write(self, writer: Writer) -> str:
        """Write the folder with everything in it; return its id."""
        entries: Entries = {name: (False, number) for name, number in self.files.items()}
        for name, child in self.folders.items():
            entries[name] = (True, child if isinstance(child, str) else child.write(writer))
        return writer.add_tree(entries)


@dataclass(frozen=True)
class _Row:
    """A table from the database: its document, and its statistics."""

    document: dict[str, Any]
    statistics: dict[str, Any]


def build(
    stream: Stream, writer: Writer, base: Base | None = None, versions: Versions = no_versions
) -> Built:
    """Read a stream to its end and build the tree.

    Raises LakehouseError if the stream is truncated, or the database is not that of a Hive Metastore 3.1.3.
    """
    [about] = stream.rows("about")
    database_tables = [
        schema.DatabaseTable(name, tuple(columns or ()), bool(used))
        for name, columns, used in stream.rows("schema")
    ]
    if missing := schema.missing(database_tables):
        raise LakehouseError(
            f"the database is no metastore that can be read: it has no {', '.join(missing[:3])}"
            f"{' ...' if len(missing) > 3 else ''} (schema {about['schema'] or 'unknown'})",  # noqa: PLR2004
            ".venv/bin/lakehouse doctor",
        )
    [marks] = stream.rows("marks")
    root = Folder()
    counts = _put_databases(stream, root, writer)
    names = {number: (Name(*parts), count) for number, *parts, count in stream.rows("names")}
    lists = {
        int(row.split(b"\t", 1)[0]): document(row.split(b"\t", 1)[1]) for row in stream.section("columns")
    }
    rows = dict(_tables(stream.section("tables"), lists))
    partitions = _Partitions(root, writer, lists)
    unread = _unchanged_ranges(base, marks)
    for number, lines in _by_table(stream.section("partitions")):
        if number not in names:
            raise LakehouseError(
                f"the database has partitions of a table that is not there (TBL_ID {number})",
                ".venv/bin/lakehouse doctor",
            )
        partitions.put(names[number][0], lines, unread.pop(number, None))
    stream.end()
    # Changed tables without a changed partition.
    for number in rows.keys() & unread.keys():
        partitions.put(names[number][0], iter(()), unread[number])
    # After the end of the transaction, so that the database does not wait for a file system.
    delta = {number: place for number, row in rows.items() if (place := _delta_place(row.document))}
    delta_versions = versions(sorted(set(delta.values())))
    for number, place in delta.items():
        if place in delta_versions:
            rows[number].document["data"]["version"] = delta_versions[place]
    for number, row in rows.items():
        put_object(root, writer, names[number][0], row.document, row.statistics)
    if base is not None:
        unchanged = [name for number, (name, _) in names.items() if number not in rows]
        _copy_tables(root, writer, base, unchanged)
    tree = root.write(writer)
    return Built(
        tree=tree,
        identity=writer.tree(tree)[CATALOG],
        about=about,
        strangers=tuple(schema.strangers(database_tables)),
        # The version of a Delta table is not in the database, so it is looked up for each commit.
        marks={number: mark for number, mark in marks.items() if number not in delta},
        counts=counts
        | {
            "tables": len(names),
            "partitions": sum(count for _, count in names.values()),
            "read": len(rows),
        },
        unversioned=tuple(
            sorted(str(names[number][0]) for number, place in delta.items() if place not in delta_versions)
        ),
    )


def settings() -> bytes:
    """Return the file with the version of the layout, and the volatile parameters."""
    prefixes = (f"{prefix}*" for prefix in documents.VOLATILE_PREFIXES)
    return pretty({"format": FORMAT, "volatile": [*documents.VOLATILE, *prefixes]})


def is_folder(file: str) -> bool:
    """Return whether the name of an entry in a tree is that of a folder, which has no dot."""
    return "." not in file


def folder(writer: Writer, ids: Mapping[str, str]) -> str:
    """Write a folder of existing objects, by name; return its id."""
    return writer.add_tree({name: (is_folder(name), number) for name, number in ids.items()})


def put_access(
    root: Folder, writer: Writer, roles: Iterable[Document], privileges: Iterable[Document] | None
) -> None:
    """Put the settings, the roles with their members, and the privileges on everything."""
    catalog = root.at([CATALOG])
    roles = [{**role, "members": sorted_rows(role["members"])} for role in roles]
    access = {"roles": sorted_rows(roles), "privileges": sorted_rows(privileges)}
    catalog.files[SETTINGS] = writer.add_blob(settings())
    catalog.files[ACCESS] = writer.add_blob(pretty(without_nothing(access)))


def put_object(
    root: Folder, writer: Writer, name: Name, content: Document, volatile: Document | None = None
) -> None:
    """Put the document of a catalog, database, function, table or view, and its volatile part if any."""
    file = TABLE if name.table else "database.json" if name.database else "catalog.json"
    path = name.path if name.function else (*name.path, file)
    root.put((CATALOG, *path), writer.add_blob(pretty(content)))
    if volatile:
        root.put((STATISTICS, *path), writer.add_blob(pretty(volatile)))


def _put_databases(stream: Stream, root: Folder, writer: Writer) -> dict[str, int]:
    """Put everything except tables; return the number of each kind."""
    [access] = stream.rows("access")
    put_access(root, writer, access["roles"] or (), access["privileges"])
    counts = dict.fromkeys(("catalogs", "databases", "functions"), 0)
    for name, row in stream.rows("catalogs"):
        put_object(root, writer, Name(name), without_nothing(row))
        counts["catalogs"] += 1
    for parent, name, row in stream.rows("databases"):
        content = without_nothing(row | {"privileges": sorted_rows(row["privileges"])})
        put_object(root, writer, Name(parent, name), content)
        counts["databases"] += 1
    for parent, database, name, row in stream.rows("functions"):
        put_object(root, writer, Name(parent, database, function=name), without_nothing(row))
        counts["functions"] += 1
    return counts


def _tables(rows: Iterable[bytes], lists: Mapping[int, list[Any]]) -> Iterator[tuple[str, _Row]]:
    for row in rows:
        number, text = row.split(b"\t", 1)
        fields, parameters, access, location, columns, shape, statistics = document(text)
        parameters = parameters or {}
        content = without_nothing(
            {
                **fields,
                "partition_keys": [without_nothing(key) for key in fields["partition_keys"] or ()],
                "constraints": sorted_rows(fields["constraints"]),
                "privileges": sorted_rows(fields["privileges"]),
                "parameters": {key: value for key, value in parameters.items() if not is_volatile(key)},
                "storage": without_nothing({**_shape(shape, lists.get(columns)), "location": location}),
            }
        )
        if version := documents.data(content):
            content["data"] = version
        volatile = {key: value for key, value in parameters.items() if is_volatile(key)}
        counts = {"parameters": volatile, "last_access": access, "columns": _column_statistics(statistics)}
        yield number.decode(), _Row(content, without_nothing(counts))


def _shape(descriptor: Document | None, columns: list[Any] | None) -> dict[str, Any]:
    """Return the storage of a table or partition without its location."""
    if descriptor is None:
        return {}
    shape = {
        **descriptor,
        "serde": without_nothing(descriptor["serde"]) if descriptor["serde"] else None,
        "columns": [without_nothing(column) for column in columns or ()],
        "skewed_locations": sorted_rows(descriptor["skewed_locations"]),
    }
    return without_nothing(shape)


def sorted_rows(rows: Iterable[Any] | None) -> list[Any]:
    """Sort rows whose order has no meaning, and remove their empty values."""
    return in_order(without_nothing(row) if isinstance(row, dict) else row for row in rows or ())


def _column_statistics(rows: list[Any] | None) -> list[Any]:
    """Return the statistics of columns without nulls; zero is a number like others."""
    without_nulls = ({key: value for key, value in row.items() if value is not None} for row in rows or ())
    return sorted(without_nulls, key=line)


def _delta_place(table: Document) -> str | None:
    """Return the location of a Delta table whose version the metastore does not have."""
    if table.get("data", {}).get("format") != "delta" or "version" in table["data"]:
        return None
    return location(table)


def _by_table(rows: Iterable[bytes]) -> Iterator[tuple[str, Iterator[list[bytes]]]]:
    fields = (row.split(b"\t") for row in rows)
    for number, group in groupby(fields, key=lambda row: row[0]):
        yield number.decode(), group


@dataclass(frozen=True)
class _UnchangedRanges:
    """An earlier commit's tree, and the digests of the ranges of a table that have not changed since."""

    tree: str
    digests: frozenset[str]


def _unchanged_ranges(base: Base | None, marks: Mapping[str, str]) -> dict[str, _UnchangedRanges]:
    """Return the unchanged ranges of tables, by the number of the table."""
    digests: dict[str, set[str]] = {}
    for key, mark in marks.items():
        number, slash, digest = key.partition("/")
        if slash and base and base.marks.get(key) == mark:
            digests.setdefault(number, set()).add(digest)
    return {number: _UnchangedRanges(base.tree, frozenset(same)) for number, same in digests.items() if base}


class _Partitions:
    """Puts the partitions of tables, which come sorted by table and name."""

    def __init__(self, root: Folder, writer: Writer, lists: Mapping[int, list[Any]]) -> None:
        self._root, self._writer, self._lists = root, writer, lists
        # Parsed fields that many partitions share, by their bytes.
        self._shapes: dict[tuple[Any, bytes], tuple[str, dict[str, Any]]] = {}
        self._parsed: dict[bytes, Any] = {}

    def put(
        self, table: Name, rows: Iterator[list[bytes]], unchanged: _UnchangedRanges | None = None
    ) -> None:
        """Put the partitions of a table: those in rows, and those of its unchanged ranges."""
        shapes: dict[str, Any] = {}
        lines: dict[str, Lines] = {CATALOG: [], STATISTICS: []}
        for row in rows:
            _add_partition(lines, *self._partition(row, shapes))
        folders = self._spliced(table, unchanged, lines, shapes) if unchanged else {}
        _put_partitions(self._root, self._writer, table, shapes, lines, folders)

    def _spliced(
        self, table: Name, unchanged: _UnchangedRanges, lines: dict[str, Lines], shapes: dict[str, Any]
    ) -> dict[str, dict[str, str]]:
        """Add the unchanged partitions to lines and shapes; return the unchanged folders of each part."""
        writer = self._writer
        before = {part: _below(writer, writer.tree(unchanged.tree).get(part), table.path) for part in lines}
        if FILES not in before[CATALOG]:
            raise StaleError(f"{table} is not in the commit that was built on")
        table_ranges = splicing.ranges_of(writer, before[CATALOG][FILES], unchanged.digests)
        folders = {}
        for part, entries in before.items():
            files = [entries[PARTITIONS]] if PARTITIONS in entries else []
            lines[part], folders[part] = splicing.spliced(
                writer, files, entries.get(FILES), table_ranges, lines[part]
            )
        earlier_shapes = json.loads(writer.blob(before[CATALOG][SHAPES]))
        further = earlier_shapes.keys() - shapes.keys()
        for shape in splicing.used(writer, further, lines[CATALOG], folders[CATALOG].values()):
            shapes[shape] = earlier_shapes[shape]
        return folders

    def _partition(self, row: list[bytes], shapes: dict[str, Any]) -> tuple[Document, Document]:
        """Return a partition with the name of its shape, and its volatile part."""
        name, location, created, access, columns = document(row[_HEAD])
        key = (columns, row[_SHAPE])
        if key not in self._shapes:
            shape = _shape(document(row[_SHAPE]), self._lists.get(columns))
            self._shapes[key] = _shape_name(shape), shape
        digest, shape = self._shapes[key]
        shapes[digest] = shape
        content = {
            "name": name,
            "values": document(row[_VALUES]),
            "location": location,
            "created": created,
            "shape": digest,
            "parameters": self._parse(row[_PARAMETERS]),
            "privileges": sorted_rows(self._parse(row[_GRANTS])),
        }
        volatile = without_nothing(
            {
                "parameters": document(row[_VOLATILE]),
                "last_access": access,
                "columns": _column_statistics(document(row[_COLUMNS])),
            }
        )
        return without_nothing(content), volatile

    def _parse(self, field: bytes) -> Any:
        """Parse a field that many partitions share, each text once."""
        if field not in self._parsed:
            self._parsed[field] = document(field)
        return self._parsed[field]


def put_partitions(
    root: Folder, writer: Writer, table: Name, partitions: Iterable[tuple[Document, Document]]
) -> int:
    """Put the partitions of a table, sorted by name, each with its storage, and its volatile part.

    Returns their number.
    """
    shapes: dict[str, Any] = {}
    lines: dict[str, Lines] = {CATALOG: [], STATISTICS: []}
    for content, volatile in partitions:
        shape = content.get("storage", {})
        shape_name = _shape_name(shape)
        shapes[shape_name] = shape
        stored = {key: value for key, value in content.items() if key != "storage"}
        _add_partition(lines, {**stored, "shape": shape_name}, volatile)
    if lines[CATALOG]:
        _put_partitions(root, writer, table, shapes, lines, {})
    return len(lines[CATALOG])


def _shape_name(shape: Document) -> str:
    return documents.digest(line(shape))


def _add_partition(lines: Mapping[str, Lines], content: Document, volatile: Document) -> None:
    name = content["name"]
    lines[CATALOG].append((name, line(content)))
    if volatile:
        lines[STATISTICS].append((name, line({"name": name, **volatile})))


def _put_partitions(  # noqa: PLR0913, PLR0917 -- the parts of a table's folder
    root: Folder,
    writer: Writer,
    table: Name,
    shapes: Document,
    lines: Mapping[str, Lines],
    folders: Mapping[str, Mapping[str, str]],
) -> None:
    """Put shapes, lines and complete folders of a table's partitions."""
    root.at((CATALOG, *table.path)).files[SHAPES] = writer.add_blob(pretty(shapes))
    for part, part_lines in lines.items():
        if part_lines or folders.get(part):
            put_lines(root.at((part, *table.path)), writer, part_lines, folders.get(part, {}))


def put_lines(
    table: Folder, writer: Writer, lines: Lines, folders: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Put the lines of a table's partitions, sorted by name, into one file or several folders of files.

    `folders` are complete folders of further partitions.
    """

    def blob(texts: Iterable[str]) -> str:
        return writer.add_blob("".join(f"{text}\n" for text in texts).encode())

    if len(lines) <= ranges.FEW and not folders:
        table.files[PARTITIONS] = blob(text for _, text in lines)
        return
    partitions = table.at([FILES]).folders
    partitions |= folders
    for name, files in ranges.folders(lines):
        entries: Entries = {file: (False, blob(texts)) for file, texts in files}
        partitions[name] = writer.add_tree(entries)


def _copy_tables(root: Folder, writer: Writer, base: Base, tables: Collection[Name]) -> None:
    """Put the folders of unchanged tables, as they are in an earlier tree."""
    for part in (CATALOG, STATISTICS):
        earlier = writer.tree(base.tree).get(part)
        databases: dict[tuple[str, ...], Mapping[str, str]] = {}
        for name in tables:
            *folder, last = name.path
            key = tuple(folder)
            if key not in databases:
                databases[key] = _below(writer, earlier, key)
            if last in databases[key]:
                root.put((part, *name.path), databases[key][last], folder=True)
            elif part == CATALOG:
                raise StaleError(f"{name} is not in the commit that was built on")


def _below(writer: Writer, tree: str | None, path: Iterable[str]) -> Mapping[str, str]:
    """Return the entries of a folder in a tree; none if it is missing."""
    for name in path:
        if tree is None:
            return {}
        tree = writer.tree(tree).get(name)
    return writer.tree(tree) if tree else {}
