"""Find inconsistencies that a merge introduces, such as a key on a column that the other side has dropped.

An inconsistency that one side has already is no conflict: the metastore accepted it.
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
    """An inconsistency: the first object, its field, and the reason; `names` are all objects in it."""

    name: Name
    field: str
    why: str
    names: tuple[Name, ...]


@dataclass(frozen=True)
class Catalog:
    """The objects of a tree by name; none for an empty tree."""

    reader: Reader
    tree: str | None

    def document(self, table: Name, part: str = build.CATALOG) -> Document | None:
        """Return the document of a table or view, or its statistics; None if it is missing."""
        number = self._number((*table.path, build.TABLE), part)
        return dict(json.loads(self.reader.blob(number))) if number else None

    def has(self, name: Name) -> bool:
        """Return whether the tree has an object."""
        return self._number(name.path) is not None

    def _number(self, path: Iterable[str], part: str = build.CATALOG) -> str | None:
        number = self.reader.tree(self.tree).get(part) if self.tree else None
        for word in path:
            number = self.reader.tree(number).get(word) if number else None
        return number


def changed(reader: Reader, before: str | None, after: str | None) -> set[Name]:
    """Return the databases, tables and functions whose own documents differ between two trees."""
    names: set[Name] = set()
    for file, *catalogs in _pairs(reader, *(_entry(reader, tree, build.CATALOG) for tree in (before, after))):
        if build.is_folder(file):
            for folder, *numbers in _pairs(reader, *(_entry(reader, number, "db") for number in catalogs)):
                names.update(_changed(reader, Name(plain(file), plain(folder)), numbers))
    return names


def _changed(reader: Reader, database: Name, numbers: Sequence[str | None]) -> Iterator[Name]:
    """Give a database, and the tables and functions in it, whose documents differ."""

    def entries(file: str) -> list[str | None]:
        return [_entry(reader, number, file) for number in numbers]

    if len(set(entries("database.json"))) > 1:
        yield database
    for table, *tables in _pairs(reader, *entries("table")):
        if len({_entry(reader, number, build.TABLE) for number in tables}) > 1:
            yield replace(database, table=plain(table))
    for function, *_ in _pairs(reader, *entries("function")):
        yield replace(database, function=plain(function.removesuffix(".json")))


def _entry(reader: Reader, number: str | None, file: str) -> str | None:
    return reader.tree(number).get(file) if number else None


def _pairs(reader: Reader, old: str | None, new: str | None) -> Iterator[tuple[str, str | None, str | None]]:
    """Give the names of entries that differ between two folders, with both ids."""
    old_entries, new_entries = (reader.tree(number) if number else {} for number in (old, new))
    for file in old_entries.keys() | new_entries.keys():
        if old_entries.get(file) != new_entries.get(file):
            yield file, old_entries.get(file), new_entries.get(file)


def misfits(reader: Reader, trees: Three[str | None], merged: str) -> list[Misfit]:
    """Return the inconsistencies of a merged tree that neither side has."""
    ours, theirs = (changed(reader, trees.base, side) for side in trees[1:])
    if not ours or not theirs:
        return []
    names = ours | theirs
    old = {
        (misfit.names, misfit.field)
        for tree in trees[1:]
        for misfit in _misfits(Catalog(reader, tree), names)
    }
    new = [
        misfit
        for misfit in _misfits(Catalog(reader, merged), names)
        if (misfit.names, misfit.field) not in old
    ]
    for name in sorted(name for name in ours & theirs if name.table):
        base, *sides, merged_table = (Catalog(reader, tree).document(name) or {} for tree in (*trees, merged))
        new += _mixed(name, Three(base, *sides), merged_table)
    return sorted(new, key=lambda misfit: (misfit.name, misfit.field))


def of_partition(name: Name, documents: Three[Document], merged: Document) -> list[Misfit]:
    """Return the inconsistencies of a merged partition that neither side has."""
    old = {misfit.field for side in documents[1:] for misfit in _columns(name, side)}
    return [misfit for misfit in _columns(name, merged) if misfit.field not in old]


def _misfits(catalog: Catalog, names: Collection[Name]) -> Iterator[Misfit]:
    tables = {
        name: table for name in sorted(names) if name.table and (table := catalog.document(name)) is not None
    }
    yield from _same_but_for_case(name for name in names if catalog.has(name))
    for name, table in tables.items():
        yield from _columns(name, table)
        yield from _foreign_keys(name, table, catalog)
    yield from _same_constraints(tables)
    yield from _same_files(tables)


def _same_but_for_case(names: Iterable[Name]) -> Iterator[Misfit]:
    """Find objects whose names differ in case only, which the metastore treats as equal."""
    by_path: dict[tuple[str, ...], list[Name]] = defaultdict(list)
    for name in sorted(names):
        by_path[tuple(part.lower() for part in name.path)].append(name)
    for first, *duplicates in by_path.values():
        for name in duplicates:
            yield Misfit(name, "name", f"{first} has it, but for large and small letters", (first, name))


def _columns(name: Name, table: Document) -> Iterator[Misfit]:
    """Find duplicate columns and keys of a table, and references to a missing column."""
    columns: dict[str, str] = {}
    rows_by_kind = {
        "column": table.get("storage", {}).get("columns"), "partition key": table.get("partition_keys"),
    }  # fmt: skip
    for kind, rows in rows_by_kind.items():
        for row in rows or ():
            column = str(row["name"])
            if (duplicate := columns.get(column.lower())) is not None:
                yield Misfit(name, f"{kind} {column}", f"the table would have a {duplicate}, too", (name,))
            columns[column.lower()] = f"{kind} {column}"
    primary = sorted({str(row["name"]) for row in _of_type(table, _PRIMARY)})
    if primary[1:]:
        yield Misfit(name, "primary key", f"the table would have several: {', '.join(primary)}", (name,))
    for field, column in _on_columns(table):
        if column.lower() not in columns:
            yield Misfit(name, field, f"it is on the column {column}, which would not be there", (name,))


def _on_columns(table: Document) -> Iterator[tuple[str, str]]:
    """Give the fields of a table that refer to a column, with its name."""
    storage = table.get("storage", {})
    for row in table.get("constraints") or ():
        if row.get("column"):
            yield f"constraint {row['name']}", str(row["column"])
    for row in table.get("privileges") or ():
        if row.get("column"):
            yield f"privilege {row['privilege']} of {row.get('to')}", str(row["column"])
    columns_by_kind = {
        "bucket": storage.get("bucket_columns") or (),
        "sort": [column for column, _ in storage.get("sort_columns") or ()],
        "skewed": storage.get("skewed_columns") or (),
    }
    for kind, columns in columns_by_kind.items():
        yield from ((f"{kind} column {column}", str(column)) for column in columns)


def _foreign_keys(name: Name, table: Document, catalog: Catalog) -> Iterator[Misfit]:
    """Find foreign keys whose table, or its primary or unique key, is missing."""
    types = _types(table)
    for key, rows in _keys(table, _FOREIGN).items():
        if not all(row.get("references") for row in rows):
            continue
        parent_catalog, parent_database, parent_table, _ = rows[0]["references"]
        parent = Name(parent_catalog or name.catalog, parent_database, parent_table)
        referenced = [
            (str(row["references"][3]).lower(), types.get(str(row.get("column")).lower())) for row in rows
        ]
        document = catalog.document(parent)
        if document is None:
            why = f"its table {parent} would not be there"
        elif referenced not in _keys_of(document):
            # The metastore compares the types, too.
            columns = ", ".join(f"{column} {kind}" for column, kind in referenced)
            why = f"{parent} would have no primary or unique key ({columns})"
        else:
            continue
        yield Misfit(name, f"foreign key {key}", why, (name, parent))


def _keys_of(table: Document) -> list[list[tuple[str, str | None]]]:
    """Return the columns, with their types, of each key to which a foreign key may refer."""
    types = _types(table)
    return [
        [(column := str(row.get("column")).lower(), types.get(column)) for row in rows]
        for kind in (_PRIMARY, _UNIQUE)
        for rows in _keys(table, kind).values()
    ]


def _types(table: Document) -> dict[str, str]:
    """Return the types of a table's columns and partition keys."""
    columns = (*(table.get("storage", {}).get("columns") or ()), *(table.get("partition_keys") or ()))
    return {str(column["name"]).lower(): str(column.get("type")) for column in columns}


def _keys(table: Document, kind: int) -> dict[str, list[Document]]:
    """Return the constraints of a kind by name, each with its rows in their order."""
    keys: dict[str, list[Document]] = defaultdict(list)
    for row in sorted(_of_type(table, kind), key=lambda row: int(row.get("position", 0))):
        keys[str(row["name"])].append(row)
    return keys


def _same_constraints(tables: Mapping[Name, Document]) -> Iterator[Misfit]:
    """Find constraints with the same name on several tables: names are unique in the metastore."""
    by_constraint: dict[str, list[Name]] = defaultdict(list)
    for name, table in tables.items():
        for constraint in sorted({str(row["name"]).lower() for row in table.get("constraints") or ()}):
            by_constraint[constraint].append(name)
    for constraint, (first, *duplicates) in by_constraint.items():
        for name in duplicates:
            why = f"{first} would have one of this name, too"
            yield Misfit(name, f"constraint {constraint}", why, (first, name))


def _same_files(tables: Mapping[Name, Document]) -> Iterator[Misfit]:
    """Find tables with the same files: a DROP of one would remove the files of the other."""
    places = TablePlaces(tables.items())
    for name, table in tables.items():
        for user in places.users(table):
            if user.table < name and not may_share(table, tables[user.table]):
                why = f"{user.table} would have the same files ({user.path})"
                yield Misfit(name, "files", why, (user.table, name))


def _mixed(name: Name, documents: Three[Document], merged: Document) -> Iterator[Misfit]:
    """Find values that belong together, and of which the merge has some of each side."""
    schema = _spark_schema(merged)
    is_consistent = any(
        _spark_schema(side) == schema and _all_columns(side) == _all_columns(merged) for side in documents[1:]
    )
    if schema and schema != _spark_schema(documents.base) and not is_consistent:
        yield Misfit(
            name, f"parameter {SPARK_SCHEMA}", "it would be of other columns than the table's", (name,)
        )
    sides = [_constraints(side) for side in documents[1:]]
    for constraint, rows in _constraints(merged).items():
        if rows not in [side.get(constraint) for side in sides]:
            yield Misfit(name, f"constraint {constraint}", "each side has other columns in it", (name,))


def _spark_schema(table: Document) -> dict[str, str]:
    """Return the parameters with Spark's schema of a table, of which a long one has several."""
    parameters = table.get("parameters") or {}
    return {key: value for key, value in parameters.items() if key.startswith(SPARK_SCHEMA)}


def _all_columns(table: Document) -> tuple[object, object]:
    return table.get("storage", {}).get("columns"), table.get("partition_keys")


def _constraints(table: Document) -> dict[str, list[Document]]:
    by_name: dict[str, list[Document]] = defaultdict(list)
    for row in table.get("constraints") or ():
        by_name[str(row["name"])].append(row)
    return by_name


def _of_type(table: Document, kind: int) -> Iterator[Document]:
    return (row for row in table.get("constraints") or () if row.get("type", _PRIMARY) == kind)
