"""Restore entries of databases, tables and partitions into the metastore, by Thrift.

`backup/catalog.py` writes the entries. No table is dropped: one of the same name is altered, in one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hive_metastore.ttypes import (
    AlreadyExistsException,
    Database,
    EnvironmentContext,
    FieldSchema,
    NoSuchObjectException,
    Order,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from lakehouse.catalog.shared_files import normal_path
from lakehouse.metastore import Metastore
from lakehouse.metastore.iceberg import iceberg_requests

_AT_ONCE = 500
_ALL = -1
# The metastore would list every file of a table to count them anew.
_AS_IT_IS = {"DO_NOT_UPDATE_STATS": "true"}
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """A table of the metastore, the folder of its files, and Iceberg's metadata file."""

    database: str
    name: str
    location: str
    metadata: str

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"


class Catalog:
    """The metastore, in the name of HDFS's superuser."""

    def __init__(self, metastore: Metastore) -> None:
        self._call = metastore.call

    def places(self) -> dict[str, Place]:
        """Return all tables by qualified name."""
        return {
            str(place): place
            for database in self._call("get_all_databases")
            for names in _chunks(self._call("get_all_tables", database))
            for place in map(_place, self._call("get_table_objects_by_name", database, list(names)))
        }

    def has_database(self, name: str) -> bool:
        """Return whether the database exists."""
        try:
            self._call("get_database", name)
        except NoSuchObjectException:
            return False
        return True

    def make_database(self, entry: Entry) -> None:
        """Create a database as in the backup."""
        self._call("create_database", database(entry))

    def put(self, entry: Entry) -> None:
        """Create a table with its partitions as in the backup, or alter the one of its name."""
        new_table = table(entry)
        try:
            self._call("create_table", new_table)
        except AlreadyExistsException:
            context = EnvironmentContext(properties=_AS_IT_IS)
            name = new_table.dbName, new_table.tableName
            for request in iceberg_requests(new_table, self._call("get_table", *name)):
                self._call("alter_table_with_environment_context", *name, request, context)
        if entry["keys"]:
            self._partitions(entry)

    def _partitions(self, entry: Entry) -> None:
        name = entry["database"], entry["name"]
        restored = {tuple(partition.values): partition for partition in partitions(entry)}
        existing = {tuple(partition.values) for partition in self._call("get_partitions", *name, _ALL)}
        for values in existing - restored.keys():
            # Its files stay.
            self._call("drop_partition", *name, list(values), False)
        for chunk in _chunks([partition for values, partition in restored.items() if values in existing]):
            self._call("alter_partitions", *name, list(chunk))
        for chunk in _chunks([partition for values, partition in restored.items() if values not in existing]):
            self._call("add_partitions", list(chunk))


def overlap(folder: str, other_folder: str) -> bool:
    """Return whether two folders are the same, or one contains the other; an empty path never overlaps."""
    if not folder or not other_folder:
        return False
    first, second = f"{normal_path(folder)}/", f"{normal_path(other_folder)}/"
    return first.startswith(second) or second.startswith(first)


def location(entry: Entry) -> str:
    """Return the folder of a table's files; empty for a view."""
    storage = entry["storage"] or {}
    serde = storage.get("serde") or {"parameters": {}}
    return str(serde["parameters"].get("path") or storage.get("location") or "")


def renamed_copy(entry: Entry, database: str, name: str, folder: str) -> dict[str, Any]:
    """Return the entry with another name, and with its files in `folder` unless that is empty."""
    copy = {**entry, "database": database, "name": name}
    if not folder:
        return copy
    old, storage = normal_path(location(entry)), dict(entry["storage"])
    parameters = dict(storage["serde"]["parameters"])
    if "path" in parameters:
        parameters["path"] = folder
    copy["storage"] = {
        **storage,
        # Spark has a folder of its own here for a table whose files are at `path`.
        "location": folder if normal_path(storage["location"]) == old else storage["location"],
        "serde": {**storage["serde"], "parameters": parameters},
    }
    copy["partitions"] = [
        {
            **partition,
            "storage": {
                **partition["storage"],
                "location": folder + normal_path(partition["storage"]["location"]).removeprefix(old),
            },
        }
        for partition in entry["partitions"]
    ]
    return copy


# -- Entries as Thrift objects --


def database(entry: Entry) -> Database:
    """Return the Thrift object of a database."""
    return Database(
        name=entry["name"],
        description=entry["description"],
        locationUri=entry["location"],
        parameters=dict(entry["parameters"]),
        ownerName=entry["owner"],
        ownerType=_principal(entry["owner_type"]),
    )


def table(entry: Entry) -> Table:
    """Return the Thrift object of a table or view."""
    return Table(
        tableName=entry["name"],
        dbName=entry["database"],
        owner=entry["owner"],
        ownerType=_principal(entry["owner_type"]),
        retention=entry["retention"],
        sd=_storage(entry["storage"]),
        partitionKeys=_fields(entry["keys"]),
        parameters=dict(entry["parameters"]),
        viewOriginalText=entry["view"],
        viewExpandedText=entry["view_expanded"],
        tableType=entry["type"],
        rewriteEnabled=entry["rewrite"],
    )


def partitions(entry: Entry) -> list[Partition]:
    """Return the Thrift objects of a table's partitions."""
    return [
        Partition(
            values=list(partition["values"]),
            dbName=entry["database"],
            tableName=entry["name"],
            sd=_storage(partition["storage"]),
            parameters=dict(partition["parameters"]),
        )
        for partition in entry["partitions"]
    ]


def _principal(name: str | None) -> int:
    return int(PrincipalType._NAMES_TO_VALUES[name or "USER"])


def _fields(rows: Sequence[Entry]) -> list[FieldSchema]:
    return [FieldSchema(row["name"], row["type"], row["comment"]) for row in rows]


def _storage(entry: Entry | None) -> StorageDescriptor | None:
    if entry is None:
        return None
    serde = entry["serde"] or {"name": None, "library": None, "parameters": {}}
    return StorageDescriptor(
        cols=_fields(entry["columns"]),
        location=entry["location"],
        inputFormat=entry["input"],
        outputFormat=entry["output"],
        compressed=entry["compressed"],
        numBuckets=entry["buckets"],
        serdeInfo=SerDeInfo(serde["name"], serde["library"], dict(serde["parameters"])),
        bucketCols=list(entry["bucketed"]),
        sortCols=[Order(column, order) for column, order in entry["sorted"]],
        parameters=dict(entry["parameters"]),
        storedAsSubDirectories=entry["subfolders"],
    )


def _place(table: Table) -> Place:
    storage, parameters = table.sd, table.parameters or {}
    folder = ((storage.serdeInfo.parameters or {}).get("path") or storage.location or "") if storage else ""
    return Place(table.dbName, table.tableName, str(folder), str(parameters.get("metadata_location", "")))


def _chunks(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
