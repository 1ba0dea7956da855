"""What a metastore answers as the documents of the catalog's history: one model for tables of every format.

The other way is `lakehouse.catalog.bindings.objects`. What a document has no place for is told, never dropped
in silence. Constraints, privileges and statistics of columns are told by other calls of the metastore.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hive_metastore.ttypes import PrincipalType

from lakehouse.catalog import documents
from lakehouse.catalog.bindings.field_reader import Lost, Taken
from lakehouse.catalog.documents import Document, is_volatile, line, without_nothing
from lakehouse.catalog.names import DEFAULT_CATALOG, Name

# The number of a row: another one after each restore.
_NUMBER = "id"


@dataclass(frozen=True)
class Described:
    """An object by its name: its document, and what is volatile of it, as a commit keeps the two apart."""

    name: Name
    document: Document
    volatile: Document

    @property
    def format(self) -> str:
        """Of a table: `view`, `iceberg`, `delta`, `hudi` or `hive`."""
        return documents.table_format(self.document)


def database(found: Any, lost: Lost) -> Described:
    """Describe a database; `lost` is told each field that its document has no place for."""
    name = Name(found.catalogName or DEFAULT_CATALOG, found.name)
    fields = _fields(found, name, lost, "name", "catalogName")
    said = {
        "description": fields.take("description"),
        "location": fields.take("locationUri"),
        "owner": fields.take("ownerName"),
        "owner_type": _principal(fields),
        "parameters": fields.take("parameters"),
    }
    fields.end()
    return Described(name, without_nothing(said), {})


def table(found: Any, lost: Lost) -> Described:
    """Describe a table or a view; `lost` is told each field that its document has no place for."""
    name = Name(found.catName or DEFAULT_CATALOG, found.dbName, found.tableName)
    fields = _fields(found, name, lost, "catName", "dbName", "tableName", _NUMBER)
    kept, volatile = _parted(fields)
    said = without_nothing(
        {
            "type": fields.take("tableType"),
            "owner": fields.take("owner"),
            "owner_type": _principal(fields),
            "created": fields.take("createTime"),
            "retention": fields.take("retention"),
            "rewrite": fields.take("rewriteEnabled"),
            "view": fields.take("viewExpandedText"),
            "view_as_written": fields.take("viewOriginalText"),
            "partition_keys": _columns(fields.take("partitionKeys"), name, lost),
            "parameters": kept,
            "storage": _storage(fields.take("sd"), name, lost, located=True),
            "materialized": _materialized(fields.take("creationMetadata"), name, lost),
        }
    )
    if data := documents.data(said):
        said["data"] = data
    fields.end()
    return Described(name, said, volatile)


def partition(called: str, found: Any, lost: Lost) -> Described:
    """Describe the partition that is called so, such as `day=2026-01-01`."""
    name = Name(found.catName or DEFAULT_CATALOG, found.dbName, found.tableName, called)
    fields = _fields(found, name, lost, "catName", "dbName", "tableName")
    kept, volatile = _parted(fields)
    said = {
        "name": called,
        "values": fields.take("values"),
        "location": found.sd.location if found.sd else None,
        "created": fields.take("createTime"),
        "parameters": kept,
        # Partitions share all of it but the location.
        "storage": _storage(fields.take("sd"), name, lost, located=False),
    }
    fields.end()
    return Described(name, without_nothing(said), volatile)


def _fields(found: Any, name: Name | str, lost: Lost, *known: str) -> Taken:
    """Return the fields that say something: those of a new object do not."""
    nothing = vars(type(found)())
    said = {
        key: value for key, value in vars(found).items() if key not in known and value != nothing.get(key)
    }
    return Taken(said, str(name), lost)


def _parted(fields: Taken) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what a user meant, and what engines write beside it."""
    parameters: Mapping[str, str] = fields.take("parameters") or {}
    volatile = {key: value for key, value in parameters.items() if is_volatile(key)}
    kept = {key: value for key, value in parameters.items() if key not in volatile}
    return kept, without_nothing({"parameters": volatile, "last_access": fields.take("lastAccessTime")})


def _principal(fields: Taken) -> str:
    return str(PrincipalType._VALUES_TO_NAMES[fields.take("ownerType", PrincipalType.USER)])


def _columns(columns: Any, name: Name | str, lost: Lost) -> list[dict[str, Any]]:
    found = []
    for one in columns or ():
        fields = _fields(one, f"{name} column {one.name}", lost)
        found.append(without_nothing({word: fields.take(word) for word in ("name", "type", "comment")}))
        fields.end()
    return found


def _storage(found: Any, name: Name, lost: Lost, *, located: bool) -> dict[str, Any]:
    if not found:
        return {}
    whole = f"{name} storage"
    fields = _fields(found, whole, lost, "location")
    said = {
        "columns": _columns(fields.take("cols"), whole, lost),
        "location": found.location if located else None,
        "input_format": fields.take("inputFormat"),
        "output_format": fields.take("outputFormat"),
        "compressed": fields.take("compressed"),
        "buckets": fields.take("numBuckets"),
        "subdirectories": fields.take("storedAsSubDirectories"),
        "bucket_columns": fields.take("bucketCols"),
        "sort_columns": [[one.col, one.order] for one in fields.take("sortCols") or ()],
        "parameters": fields.take("parameters"),
        "serde": _serde(fields.take("serdeInfo"), whole, lost),
        **_skewed(fields.take("skewedInfo"), whole, lost),
    }
    fields.end()
    return without_nothing(said)


def _serde(found: Any, name: str, lost: Lost) -> dict[str, Any]:
    if not found:
        return {}
    fields = _fields(found, f"{name} serde", lost)
    said = {
        "name": fields.take("name"),
        "library": fields.take("serializationLib"),
        "description": fields.take("description"),
        "serializer": fields.take("serializerClass"),
        "deserializer": fields.take("deserializerClass"),
        "type": fields.take("serdeType"),
        "parameters": fields.take("parameters"),
    }
    fields.end()
    return without_nothing(said)


def _skewed(found: Any, name: str, lost: Lost) -> dict[str, Any]:
    if not found:
        return {}
    fields = _fields(found, f"{name} skewed", lost)
    places = fields.take("skewedColValueLocationMaps") or {}
    said = {
        "skewed_columns": fields.take("skewedColNames"),
        "skewed_values": fields.take("skewedColValues"),
        "skewed_locations": sorted(([list(values), place] for values, place in places.items()), key=_line),
    }
    fields.end()
    return said


def _line(one: Any) -> str:
    return line({"": one})


def _materialized(found: Any, name: Name, lost: Lost) -> list[dict[str, Any]]:
    if not found:
        return []
    fields = _fields(found, f"{name} materialized", lost, "catName", "dbName", "tblName")
    catalog = found.catName or DEFAULT_CATALOG
    said = {
        "transactions": fields.take("validTxnList"),
        "time": fields.take("materializationTime"),
        # Hive names them without their catalog, and looks for them in the view's.
        "tables": sorted([catalog, *one.split(".", 1)] for one in fields.take("tablesUsed") or ()),
    }
    fields.end()
    return [without_nothing(said)]
