"""The metastore as a restore asks and writes it: by Thrift, with what `backup/catalog.py` has read.

Nothing is dropped: an entry that is in the way gets the content of the one that comes back, in one call.
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
    """A table that is in the catalog now, where its files are, and Iceberg's metadata file."""

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
        """Return every table by its whole name."""
        found = {}
        for database in self._call("get_all_databases"):
            for names in _chunks(self._call("get_all_tables", database)):
                for known in self._call("get_table_objects_by_name", database, list(names)):
                    one = _place(known)
                    found[str(one)] = one
        return found

    def has_database(self, name: str) -> bool:
        """Tell whether there is such a database."""
        try:
            self._call("get_database", name)
        except NoSuchObjectException:
            return False
        return True

    def make_database(self, entry: Entry) -> None:
        """Make a database as it was."""
        self._call("create_database", database(entry))

    def put(self, entry: Entry) -> None:
        """Make a table as it was, with its partitions; one of its name becomes it."""
        wanted = table(entry)
        try:
            self._call("create_table", wanted)
        except AlreadyExistsException:
            context = EnvironmentContext(properties=_AS_IT_IS)
            name = wanted.dbName, wanted.tableName
            for request in iceberg_requests(wanted, self._call("get_table", *name)):
                self._call("alter_table_with_environment_context", *name, request, context)
        if entry["keys"]:
            self._partitions(entry)

    def _partitions(self, entry: Entry) -> None:
        name = entry["database"], entry["name"]
        wanted = {tuple(one.values): one for one in partitions(entry)}
        there = {tuple(one.values) for one in self._call("get_partitions", *name, _ALL)}
        for values in there - wanted.keys():
            # Without the files.
            self._call("drop_partition", *name, list(values), False)
        for some in _chunks([one for values, one in wanted.items() if values in there]):
            self._call("alter_partitions", *name, list(some))
        for some in _chunks([one for values, one in wanted.items() if values not in there]):
            self._call("add_partitions", list(some))


def overlap(one: str, other: str) -> bool:
    """Tell whether two places are the same folder, or one is in the other; none overlaps with nothing."""
    if not one or not other:
        return False
    first, second = f"{normal_path(one)}/", f"{normal_path(other)}/"
    return first.startswith(second) or second.startswith(first)


def location(entry: Entry) -> str:
    """Return the folder of a table's files; empty for a view."""
    storage = entry["storage"] or {}
    serde = storage.get("serde") or {"parameters": {}}
    return str(serde["parameters"].get("path") or storage.get("location") or "")


def renamed(entry: Entry, database: str, name: str, folder: str) -> dict[str, Any]:
    """Return the entry of a copy with another name, whose files are in another folder if there is one."""
    changed = {**entry, "database": database, "name": name}
    if not folder:
        return changed
    old, storage = normal_path(location(entry)), dict(entry["storage"])
    parameters = dict(storage["serde"]["parameters"])
    if "path" in parameters:
        parameters["path"] = folder
    changed["storage"] = {
        **storage,
        # Spark has a folder of its own here for a table whose files are at `path`.
        "location": folder if normal_path(storage["location"]) == old else storage["location"],
        "serde": {**storage["serde"], "parameters": parameters},
    }
    changed["partitions"] = [
        {
            **one,
            "storage": {
                **one["storage"],
                "location": folder + normal_path(one["storage"]["location"]).removeprefix(old),
            },
        }
        for one in entry["partitions"]
    ]
    return changed


# -- Entries as the bindings have them --


def database(entry: Entry) -> Database:
    """Return a database."""
    return Database(
        name=entry["name"],
        description=entry["description"],
        locationUri=entry["location"],
        parameters=dict(entry["parameters"]),
        ownerName=entry["owner"],
        ownerType=_principal(entry["owner_type"]),
    )


def table(entry: Entry) -> Table:
    """Return a table, or a view."""
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
    """Return the partitions of a table."""
    return [
        Partition(
            values=list(one["values"]),
            dbName=entry["database"],
            tableName=entry["name"],
            sd=_storage(one["storage"]),
            parameters=dict(one["parameters"]),
        )
        for one in entry["partitions"]
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


def _place(known: Table) -> Place:
    storage, parameters = known.sd, known.parameters or {}
    folder = ((storage.serdeInfo.parameters or {}).get("path") or storage.location or "") if storage else ""
    return Place(known.dbName, known.tableName, str(folder), str(parameters.get("metadata_location", "")))


def _chunks(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
