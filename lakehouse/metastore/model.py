"""Convert Thrift objects of a metastore into documents of the catalog's history, for tables of every format.

`lakehouse.catalog.bindings.objects` is the inverse. Fields that a document cannot hold are reported, never
dropped silently. `grants_and_constraints` has what the metastore returns by calls of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hive_metastore.ttypes import PrincipalType

from lakehouse.catalog import documents
from lakehouse.catalog.bindings.field_reader import FieldReader, ReportField
from lakehouse.catalog.documents import Document, in_order, is_volatile, without_nothing
from lakehouse.catalog.names import DEFAULT_CATALOG, Name

# The primary key of the row: a restore changes it.
_NUMBER = "id"


@dataclass(frozen=True)
class Described:
    """An object: its name, its document, and its volatile part, which a commit stores separately."""

    name: Name
    document: Document
    volatile: Document

    @property
    def format(self) -> str:
        """The format of a table: `view`, `iceberg`, `delta`, `hudi` or `hive`."""
        return documents.table_format(self.document)


def catalog(thrift_catalog: Any, report_field: ReportField) -> Described:
    """Convert a catalog; `report_field` gets each field that its document cannot hold."""
    name = Name(thrift_catalog.name)
    fields = _fields(thrift_catalog, name, report_field, "name")
    document = {"description": fields.take("description"), "location": fields.take("locationUri")}
    fields.end()
    return Described(name, without_nothing(document), {})


def database(thrift_database: Any, report_field: ReportField) -> Described:
    """Convert a database; `report_field` gets each field that its document cannot hold."""
    name = Name(thrift_database.catalogName or DEFAULT_CATALOG, thrift_database.name)
    fields = _fields(thrift_database, name, report_field, "name", "catalogName")
    document = {
        "description": fields.take("description"),
        "location": fields.take("locationUri"),
        "owner": fields.take("ownerName"),
        "owner_type": _principal(fields),
        "parameters": fields.take("parameters"),
    }
    fields.end()
    return Described(name, without_nothing(document), {})


def function(thrift_function: Any, report_field: ReportField) -> Described:
    """Convert a function; `report_field` gets each field that its document cannot hold."""
    catalog = thrift_function.catName or DEFAULT_CATALOG
    name = Name(catalog, thrift_function.dbName, function=thrift_function.functionName)
    fields = _fields(thrift_function, name, report_field, "functionName", "dbName", "catName")
    document = {
        "class": fields.take("className"),
        "created": fields.take("createTime"),
        "type": fields.take("functionType"),
        "owner": fields.take("ownerName"),
        "owner_type": _principal(fields),
        "resources": [
            [resource.resourceType, resource.uri] for resource in fields.take("resourceUris") or ()
        ],
    }
    fields.end()
    return Described(name, without_nothing(document), {})


def table(thrift_table: Any, report_field: ReportField) -> Described:
    """Convert a table or a view; `report_field` gets each field that its document cannot hold."""
    name = Name(thrift_table.catName or DEFAULT_CATALOG, thrift_table.dbName, thrift_table.tableName)
    fields = _fields(thrift_table, name, report_field, "catName", "dbName", "tableName", _NUMBER)
    parameters, volatile = _split_parameters(fields)
    document = without_nothing(
        {
            "type": fields.take("tableType"),
            "owner": fields.take("owner"),
            "owner_type": _principal(fields),
            "created": fields.take("createTime"),
            "retention": fields.take("retention"),
            "rewrite": fields.take("rewriteEnabled"),
            "view": fields.take("viewExpandedText"),
            "view_as_written": fields.take("viewOriginalText"),
            "partition_keys": _columns(fields.take("partitionKeys"), name, report_field),
            "parameters": parameters,
            "storage": _storage(fields.take("sd"), name, report_field, located=True),
            "materialized": _materialized(fields.take("creationMetadata"), name, report_field),
        }
    )
    if data := documents.data(document):
        document["data"] = data
    fields.end()
    return Described(name, document, volatile)


def partition(partition_name: str, thrift_partition: Any, report_field: ReportField) -> Described:
    """Convert the partition of this name, such as `day=2026-01-01`."""
    name = Name(
        thrift_partition.catName or DEFAULT_CATALOG,
        thrift_partition.dbName,
        thrift_partition.tableName,
        partition_name,
    )
    fields = _fields(thrift_partition, name, report_field, "catName", "dbName", "tableName")
    parameters, volatile = _split_parameters(fields)
    document = {
        "name": partition_name,
        "values": fields.take("values"),
        "location": thrift_partition.sd.location if thrift_partition.sd else None,
        "created": fields.take("createTime"),
        "parameters": parameters,
        # Partitions share their storage, except for the location.
        "storage": _storage(fields.take("sd"), name, report_field, located=False),
    }
    fields.end()
    return Described(name, without_nothing(document), volatile)


def _fields(thrift_object: Any, name: Name | str, report_field: ReportField, *ignored: str) -> FieldReader:
    """Return a reader of the fields whose values are not the defaults of a new object."""
    defaults = vars(type(thrift_object)())
    values = {
        key: value
        for key, value in vars(thrift_object).items()
        if key not in ignored and value != defaults.get(key)
    }
    return FieldReader(values, str(name), report_field)


def _split_parameters(fields: FieldReader) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the parameters that a user sets, and the volatile part that engines write."""
    parameters: Mapping[str, str] = fields.take("parameters") or {}
    volatile = {key: value for key, value in parameters.items() if is_volatile(key)}
    set_by_user = {key: value for key, value in parameters.items() if key not in volatile}
    last_access = fields.take("lastAccessTime")
    return set_by_user, without_nothing({"parameters": volatile, "last_access": last_access})


def principal(number: int | None) -> str:
    """Return the word of a kind of principal; a user's for None."""
    return str(PrincipalType._VALUES_TO_NAMES[PrincipalType.USER if number is None else number])


def _principal(fields: FieldReader) -> str:
    return principal(fields.take("ownerType"))


def _columns(columns: Any, name: Name | str, report_field: ReportField) -> list[dict[str, Any]]:
    documents = []
    for column in columns or ():
        fields = _fields(column, f"{name} column {column.name}", report_field)
        documents.append(without_nothing({key: fields.take(key) for key in ("name", "type", "comment")}))
        fields.end()
    return documents


def _storage(descriptor: Any, name: Name, report_field: ReportField, *, located: bool) -> dict[str, Any]:
    if not descriptor:
        return {}
    path = f"{name} storage"
    fields = _fields(descriptor, path, report_field, "location")
    document = {
        "columns": _columns(fields.take("cols"), path, report_field),
        "location": descriptor.location if located else None,
        "input_format": fields.take("inputFormat"),
        "output_format": fields.take("outputFormat"),
        "compressed": fields.take("compressed"),
        "buckets": fields.take("numBuckets"),
        "subdirectories": fields.take("storedAsSubDirectories"),
        "bucket_columns": fields.take("bucketCols"),
        "sort_columns": [[order.col, order.order] for order in fields.take("sortCols") or ()],
        "parameters": fields.take("parameters"),
        "serde": _serde(fields.take("serdeInfo"), path, report_field),
        **_skewed(fields.take("skewedInfo"), path, report_field),
    }
    fields.end()
    return without_nothing(document)


def _serde(info: Any, name: str, report_field: ReportField) -> dict[str, Any]:
    if not info:
        return {}
    fields = _fields(info, f"{name} serde", report_field)
    document = {
        "name": fields.take("name"),
        "library": fields.take("serializationLib"),
        "description": fields.take("description"),
        "serializer": fields.take("serializerClass"),
        "deserializer": fields.take("deserializerClass"),
        "type": fields.take("serdeType"),
        "parameters": fields.take("parameters"),
    }
    fields.end()
    return without_nothing(document)


def _skewed(info: Any, name: str, report_field: ReportField) -> dict[str, Any]:
    if not info:
        return {}
    fields = _fields(info, f"{name} skewed", report_field)
    locations = fields.take("skewedColValueLocationMaps") or {}
    document = {
        "skewed_columns": fields.take("skewedColNames"),
        "skewed_values": fields.take("skewedColValues"),
        "skewed_locations": in_order([list(values), location] for values, location in locations.items()),
    }
    fields.end()
    return document


def _materialized(metadata: Any, name: Name, report_field: ReportField) -> list[dict[str, Any]]:
    if not metadata:
        return []
    fields = _fields(metadata, f"{name} materialized", report_field, "catName", "dbName", "tblName")
    catalog = metadata.catName or DEFAULT_CATALOG
    document = {
        "transactions": fields.take("validTxnList"),
        "time": fields.take("materializationTime"),
        # Hive stores table names without a catalog, and looks them up in the catalog of the view.
        "tables": sorted([catalog, *table.split(".", 1)] for table in fields.take("tablesUsed") or ()),
    }
    fields.end()
    return [without_nothing(document)]
