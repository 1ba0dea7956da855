"""What fits together on each side, and not in a merge of both: a key on a column that the other side dropped.

Of these, only what the merge itself makes is a conflict: a side that has it already is as the metastore is.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lakehouse.catalog import build
from lakehouse.catalog.documents import Document
from lakehouse.catalog.merging.sides import Three
from lakehouse.catalog.names import Name, plain
from lakehouse.catalog.shared_files import TablePlaces, may_share
from lakehouse.catalog.store import Reader

# As KEY_CONSTRAINTS numbers them; a document leaves out zero.
_PRIMARY, _FOREIGN, _UNIQUE = 0, 1, 2
SPARK_SCHEMA = "spark.sql.sources.schema"


@dataclass(frozen=True)
class Misfit:
    """What does not fit: the object to look at first, its field, and why; `names` are all of it."""

    name: Name
    field: str
    why: str
    names: tuple[Name, ...]


@dataclass(frozen=True)
class Catalog:
    """The objects of a tree by name; those of no tree are none."""

    reader: Reader
    tree: str | None

    def document(self, table: Name, part: str = build.CATALOG) -> Document | None:
        """Return the document of a table or view, or its statistics; None where it is not there."""
        number = self._number((*table.path, build.TABLE), part)
        return dict(json.loads(self.reader.blob(number))) if number else None

    def has(self, name: Name) -> bool:
        """Tell whether an object is there."""
        return self._number(name.path) is not None

    def _number(self, path: Iterable[str], part: str = build.CATALOG) -> str | None:
        number = self.reader.tree(self.tree).get(part) if self.tree else None
        for word in path:
            number = self.reader.tree(number).get(word) if number else None
        return number


def changed(reader: Reader, before: str | None, after: str | None) -> set[Name]:
    """Return the databases, tables and functions whose own documents differ between two trees."""
    found: set[Name] = set()
    for file, *catalogs in _pairs(reader, *(_entry(reader, tree, build.CATALOG) for tree in (before, after))):
        if build.is_folder(file):
            for folder, *both in _pairs(reader, *(_entry(reader, one, "db") for one in catalogs)):
                found.update(_changed(reader, Name(plain(file), plain(folder)), both))
    return found


def _changed(reader: Reader, database: Name, both: Sequence[str | None]) -> Iterator[Name]:
    """Give a database, and the tables and functions in it, whose documents differ."""

    def inside(file: str) -> list[str | None]:
        return [_entry(reader, one, file) for one in both]

    if len(set(inside("database.json"))) > 1:
        yield database
    for table, *own in _pairs(reader, *inside("table")):
        if len({_entry(reader, one, build.TABLE) for one in own}) > 1:
            yield replace(database, table=plain(table))
    for function, *_ in _pairs(reader, *inside("function")):
        yield replace(database, function=plain(function.removesuffix(".json")))


def _entry(reader: Reader, number: str | None, file: str) -> str | None:
    return reader.tree(number).get(file) if number else None


def _pairs(reader: Reader, old: str | None, new: str | None) -> Iterator[tuple[str, str | None, str | None]]:
    """Give the names in two folders under which they have something else, with what they have."""
    one, other = (reader.tree(number) if number else {} for number in (old, new))
    for file in one.keys() | other.keys():
        if one.get(file) != other.get(file):
            yield file, one.get(file), other.get(file)


def misfits(reader: Reader, trees: Three[str | None], merged: str) -> list[Misfit]:
    """Return what does not fit in a merged tree, and is so on neither side."""
    ours, theirs = (changed(reader, trees.base, side) for side in trees[1:])
    if not ours or not theirs:
        return []
    names = ours | theirs
    known = {(one.names, one.field) for tree in trees[1:] for one in _misfits(Catalog(reader, tree), names)}
    found = [one for one in _misfits(Catalog(reader, merged), names) if (one.names, one.field) not in known]
    for name in sorted(one for one in ours & theirs if one.table):
        base, *sides, own = (Catalog(reader, tree).document(name) or {} for tree in (*trees, merged))
        found += _mixed(name, Three(base, *sides), own)
    return sorted(found, key=lambda one: (one.name, one.field))


def of_partition(name: Name, said: Three[Document], merged: Document) -> list[Misfit]:
    """Return what does not fit in a partition that both sides have changed, and is so on neither side."""
    known = {one.field for side in said[1:] for one in _columns(name, side)}
    return [one for one in _columns(name, merged) if one.field not in known]


def _misfits(catalog: Catalog, names: Collection[Name]) -> Iterator[Misfit]:
    documents = {
        name: said for name in sorted(names) if name.table and (said := catalog.document(name)) is not None
    }
    yield from _same_but_for_case(name for name in names if catalog.has(name))
    for name, said in documents.items():
        yield from _columns(name, said)
        yield from _foreign_keys(name, said, catalog)
    yield from _same_constraints(documents)
    yield from _same_files(documents)


def _same_but_for_case(names: Iterable[Name]) -> Iterator[Misfit]:
    """Find objects whose names the metastore takes for one."""
    alike: dict[tuple[str, ...], list[Name]] = defaultdict(list)
    for name in sorted(names):
        alike[tuple(word.lower() for word in name.path)].append(name)
    for first, *others in alike.values():
        for other in others:
            yield Misfit(other, "name", f"{first} has it, but for large and small letters", (first, other))


def _columns(name: Name, said: Document) -> Iterator[Misfit]:
    """Find names of columns and keys that a table has twice, and what is on a column that it has not."""
    storage = said.get("storage", {})
    there: dict[str, str] = {}
    for kind, listed in (("column", storage.get("columns")), ("partition key", said.get("partition_keys"))):
        for one in listed or ():
            word = str(one["name"])
            if (other := there.get(word.lower())) is not None:
                yield Misfit(name, f"{kind} {word}", f"the table would have a {other}, too", (name,))
            there[word.lower()] = f"{kind} {word}"
    primary = sorted({str(one["name"]) for one in _of_type(said, _PRIMARY)})
    if primary[1:]:
        yield Misfit(name, "primary key", f"the table would have several: {', '.join(primary)}", (name,))
    for what, column in _on_columns(said):
        if column.lower() not in there:
            yield Misfit(name, what, f"it is on the column {column}, which would not be there", (name,))


def _on_columns(said: Document) -> Iterator[tuple[str, str]]:
    """Give what a table says about which of its columns."""
    storage = said.get("storage", {})
    for one in said.get("constraints") or ():
        if one.get("column"):
            yield f"constraint {one['name']}", str(one["column"])
    for one in said.get("privileges") or ():
        if one.get("column"):
            yield f"privilege {one['privilege']} of {one.get('to')}", str(one["column"])
    listed = {
        "bucket": storage.get("bucket_columns") or (),
        "sort": [column for column, _ in storage.get("sort_columns") or ()],
        "skewed": storage.get("skewed_columns") or (),
    }
    yield from (
        (f"{kind} column {column}", str(column)) for kind, columns in listed.items() for column in columns
    )


def _foreign_keys(name: Name, said: Document, catalog: Catalog) -> Iterator[Misfit]:
    """Find foreign keys whose table, or the primary or unique key there, is not there."""
    types = _types(said)
    for key, rows in _keys(said, _FOREIGN).items():
        if not all(row.get("references") for row in rows):
            continue
        of, database, table, _ = rows[0]["references"]
        parent = Name(of or name.catalog, database, table)
        wanted = [
            (str(row["references"][3]).lower(), types.get(str(row.get("column")).lower())) for row in rows
        ]
        there = catalog.document(parent)
        if there is None:
            why = f"its table {parent} would not be there"
        elif wanted not in _keys_of(there):
            # The metastore compares the types, too.
            columns = ", ".join(f"{column} {kind}" for column, kind in wanted)
            why = f"{parent} would have no primary or unique key ({columns})"
        else:
            continue
        yield Misfit(name, f"foreign key {key}", why, (name, parent))


def _keys_of(said: Document) -> list[list[tuple[str, str | None]]]:
    """Return the columns, with their types, of each key to which a foreign key may refer."""
    types = _types(said)
    return [
        [(column := str(row.get("column")).lower(), types.get(column)) for row in rows]
        for kind in (_PRIMARY, _UNIQUE)
        for rows in _keys(said, kind).values()
    ]


def _types(said: Document) -> dict[str, str]:
    """Return the types of a table's columns and partition keys."""
    listed = (*(said.get("storage", {}).get("columns") or ()), *(said.get("partition_keys") or ()))
    return {str(one["name"]).lower(): str(one.get("type")) for one in listed}


def _keys(said: Document, kind: int) -> dict[str, list[Document]]:
    """Return the constraints of a kind by name, each with its rows in their order."""
    found: dict[str, list[Document]] = defaultdict(list)
    for one in sorted(_of_type(said, kind), key=lambda one: int(one.get("position", 0))):
        found[str(one["name"])].append(one)
    return found


def _same_constraints(documents: Mapping[Name, Document]) -> Iterator[Misfit]:
    """Find constraints of one name on several tables: the metastore takes each name once."""
    tables: dict[str, list[Name]] = defaultdict(list)
    for name, said in documents.items():
        for word in sorted({str(one["name"]).lower() for one in said.get("constraints") or ()}):
            tables[word].append(name)
    for word, (first, *others) in tables.items():
        for other in others:
            yield Misfit(
                other, f"constraint {word}", f"{first} would have one of this name, too", (first, other)
            )


def _same_files(documents: Mapping[Name, Document]) -> Iterator[Misfit]:
    """Find tables with the same files, of which one's DROP would remove the other's."""
    places = TablePlaces(documents.items())
    for name, said in documents.items():
        for user in places.users(said):
            both = said, documents[user.table]
            if user.table < name and not may_share(*both):
                why = f"{user.table} would have the same files ({user.path})"
                yield Misfit(name, "files", why, (user.table, name))


def _mixed(name: Name, said: Three[Document], merged: Document) -> Iterator[Misfit]:
    """Find what has several values that belong together, and some of them from each side."""
    schemas = said.each(_spark_schema)
    schema = _spark_schema(merged)
    of_schema = [one for one in said[1:] if _spark_schema(one) == schema]
    whole = [one for one in of_schema if _all_columns(one) == _all_columns(merged)]
    if schema and schema != schemas.base and not whole:
        yield Misfit(
            name, f"parameter {SPARK_SCHEMA}", "it would be of other columns than the table's", (name,)
        )
    rows = [_constraints(one) for one in said[1:]]
    for word, found in _constraints(merged).items():
        if found not in [one.get(word) for one in rows]:
            yield Misfit(name, f"constraint {word}", "each side has other columns in it", (name,))


def _spark_schema(said: Document) -> dict[str, str]:
    """Return the parameters in which Spark keeps the schema of a table, cut into parts if it is long."""
    parameters = said.get("parameters") or {}
    return {key: value for key, value in parameters.items() if key.startswith(SPARK_SCHEMA)}


def _all_columns(said: Document) -> tuple[object, object]:
    return said.get("storage", {}).get("columns"), said.get("partition_keys")


def _constraints(said: Document) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = defaultdict(list)
    for one in said.get("constraints") or ():
        found[str(one["name"])].append(one)
    return found


def _of_type(said: Document, kind: int) -> Iterator[Document]:
    return (one for one in said.get("constraints") or () if one.get("type", _PRIMARY) == kind)
