"""States of a catalog as commits in a real repository, in the bytes that a read of a metastore makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.catalog import build, documents
from lakehouse.catalog.names import Name
from lakehouse.catalog.overlay import Batch
from lakehouse.catalog.references import MAIN
from lakehouse.catalog.store import Entry, Store, Writer

LAKE = "hdfs://lake"
SHAPE = {"columns": [{"name": "a", "type": "int"}], "buckets": -1}


@dataclass(frozen=True)
class Table:
    """A table's document, its partitions by name, and which of them have statistics."""

    said: Mapping[str, Any]
    partitions: Mapping[str, Mapping[str, Any]] | None = None
    statistics: int = 0


Tables = Mapping[str, Table]
# The databases of a catalog; what is in a database that is None is not there.
Databases = Mapping[str, Tables | None]


def table(*columns: str, partitions: Mapping[str, Any] | None = None, **more: Any) -> Table:
    """A table of Hive; `name:type` is a column of another type than int."""
    pairs = (one.partition(":") for one in columns or ("a", "b"))
    listed = [{"name": name, "type": kind or "int"} for name, _, kind in pairs]
    said = {"type": "EXTERNAL_TABLE", "storage": {"columns": listed, "location": f"{LAKE}/t"}, **more}
    if partitions is not None:
        said.setdefault("partition_keys", [{"name": "ds", "type": "string"}])
    return Table(said | ({"data": documents.data(said)}), partitions)


def iceberg(version: int, *columns: str, **parameters: str) -> Table:
    pointer = {"table_type": "ICEBERG", "metadata_location": f"{LAKE}/m{version}.json"}
    return table(*columns, parameters=pointer | parameters)


def day(number: int | str, **more: Any) -> dict[str, Any]:
    """A partition of that day, by its name."""
    return {f"ds={number}": {"values": [str(number)], "location": f"{LAKE}/t/ds={number}"} | more}


def days(*numbers: int | str) -> dict[str, Any]:
    return {name: said for number in numbers for name, said in day(number).items()}


def tree(writer: Writer, databases: Databases, functions: Mapping[str, Any] | None = None) -> str:
    """Make a commit's tree as a read of the metastore makes it."""
    root = build.Folder()
    root.put((build.CATALOG, build.SETTINGS), writer.add_blob(build.settings()))
    root.put((build.CATALOG, build.ACCESS), writer.add_blob(documents.pretty({})))
    root.put((build.CATALOG, "hive", "catalog.json"), writer.add_blob(documents.pretty({"location": LAKE})))
    for database, tables in databases.items():
        if tables is None:
            continue
        place = (build.CATALOG, *Name("hive", database).path)
        root.put((*place, "database.json"), writer.add_blob(documents.pretty({"location": LAKE})))
        for name, said in (functions or {}).items():
            root.put((*place, "function", f"{name}.json"), writer.add_blob(documents.pretty(said)))
        for name, one in tables.items():
            _put(root, writer, Name("hive", database, name), one)
    return root.write(writer)


def _put(root: build.Folder, writer: Writer, name: Name, one: Table) -> None:
    path = (build.CATALOG, *name.path)
    root.put((*path, build.TABLE), writer.add_blob(documents.pretty(one.said)))
    if one.statistics:
        place = (build.STATISTICS, *name.path, build.TABLE)
        root.put(place, writer.add_blob(documents.pretty({"last_access": one.statistics})))
    shapes, lines = {}, []
    for partition, said in sorted((one.partitions or {}).items()):
        shape = said.get("storage", SHAPE)
        short = documents.digest(documents.line(shape))
        shapes[short] = shape
        whole = {key: value for key, value in said.items() if key != "storage"}
        lines.append((partition, documents.line({"name": partition, "shape": short} | whole)))
    if lines:
        root.put((*path, build.SHAPES), writer.add_blob(documents.pretty(shapes)))
        build.put_lines(root.at(path), writer, lines)


def commit(
    store: Store, databases: Databases, branch: str = MAIN, functions: Mapping[str, Any] | None = None
) -> Entry:
    """Make a commit of a branch, which begins at the last one of main."""
    batch = Batch(store)
    made = tree(batch, databases, functions)
    batch.flush()
    with store.locked():
        if branch not in {MAIN, *store.references.names("heads")}:
            store.references.add(f"heads/{branch}", store.resolve("HEAD").id)
        number = len(list((store.path / "objects").rglob("*")))
        return store.record(
            made, store.head(branch), "a <a@example.org>", 1_800_000_000 + number, f"{branch}\n", branch
        )
