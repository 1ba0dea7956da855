"""Convert catalogs, databases, functions, tables and partitions to Thrift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hive_metastore.ttypes import (
    Catalog,
    CreationMetadata,
    Database,
    FieldSchema,
    Function,
    Order,
    Partition,
    PrincipalType,
    ResourceUri,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

from lakehouse.catalog.bindings.field_reader import FieldReader, ReportField
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name

# Fields that Thrift has no place for on purpose, or that other calls of the interface return.
_ELSEWHERE = "data", "constraints", "privileges"


def catalog(name: Name, document: Document, report_field: ReportField) -> Catalog:
    """Convert a catalog."""
    fields = FieldReader(document, str(name), report_field)
    catalog = Catalog(
        name=name.catalog, description=fields.take("description"), locationUri=fields.take("location", "")
    )
    fields.end()
    return catalog


def database(name: Name, document: Document, report_field: ReportField) -> Database:
    """Convert a database."""
    fields = FieldReader(document, str(name), report_field)
    database = Database(
        name=name.database,
        description=fields.take("description"),
        locationUri=fields.take("location", ""),
        parameters=_parameters(fields),
        ownerName=fields.take("owner"),
        ownerType=principal(fields.take("owner_type")),
        catalogName=name.catalog,
    )
    fields.end(*_ELSEWHERE)
    return database


def function(name: Name, document: Document, report_field: ReportField) -> Function:
    """Convert a function."""
    fields = FieldReader(document, str(name), report_field)
    function = Function(
        functionName=name.function,
        dbName=name.database,
        className=fields.take("class"),
        ownerName=fields.take("owner"),
        ownerType=principal(fields.take("owner_type")),
        createTime=fields.take("created", 0),
        functionType=fields.take("type", 1),
        resourceUris=[ResourceUri(kind, uri) for kind, uri in fields.take("resources", ())],
        catName=name.catalog,
    )
    fields.end()
    return function


def table(
    name: Name, document: Document, report_field: ReportField, volatile: Document | None = None
) -> Table:
    """Convert a table or a view, with its `volatile` part if given."""
    fields, volatile_fields = FieldReader(document, str(name), report_field), dict(volatile or {})
    table = Table(
        tableName=name.table,
        dbName=name.database,
        catName=name.catalog,
        owner=fields.take("owner"),
        ownerType=principal(fields.take("owner_type")),
        createTime=fields.take("created", 0),
        lastAccessTime=volatile_fields.get("last_access", 0),
        retention=fields.take("retention", 0),
        sd=_storage(fields.below("storage")),
        partitionKeys=_columns(fields, "partition_keys"),
        parameters=_parameters(fields) | volatile_fields.get("parameters", {}),
        viewOriginalText=fields.take("view_as_written"),
        viewExpandedText=fields.take("view"),
        tableType=fields.take("type"),
        rewriteEnabled=fields.take("rewrite", False),
        creationMetadata=_materialized(name, fields),
    )
    fields.end(*_ELSEWHERE)
    return table


def partition(
    name: Name, document: Document, report_field: ReportField, volatile: Document | None = None
) -> Partition:
    """Convert a partition, whose document includes its storage."""
    fields, volatile_fields = FieldReader(document, str(name), report_field), dict(volatile or {})
    fields.take("name")
    partition = Partition(
        values=list(fields.take("values", ())),
        dbName=name.database,
        tableName=name.table,
        catName=name.catalog,
        createTime=fields.take("created", 0),
        lastAccessTime=volatile_fields.get("last_access", 0),
        sd=_storage(fields.below("storage"), fields.take("location")),
        parameters=_parameters(fields) | volatile_fields.get("parameters", {}),
    )
    fields.end(*_ELSEWHERE)
    return partition


def principal(word: str | None) -> int:
    """Return the number of a kind of principal; a user's for none."""
    return int(PrincipalType._NAMES_TO_VALUES[word or "USER"])


def _parameters(fields: FieldReader) -> dict[str, str]:
    # Without nulls, as in Hive.
    return {key: value for key, value in fields.take("parameters", {}).items() if value is not None}


def _columns(fields: FieldReader, key: str) -> list[FieldSchema]:
    columns = []
    for column in fields.each(key):
        columns.append(FieldSchema(column.take("name"), column.take("type"), column.take("comment")))
        column.end()
    return columns


def _storage(fields: FieldReader, location: str | None = None) -> StorageDescriptor:
    serde = fields.below("serde")
    descriptor = StorageDescriptor(
        cols=_columns(fields, "columns"),
        location=location or fields.take("location"),
        inputFormat=fields.take("input_format"),
        outputFormat=fields.take("output_format"),
        compressed=fields.take("compressed", False),
        # A commit leaves out 0, of a table without buckets.
        numBuckets=fields.take("buckets", 0),
        serdeInfo=SerDeInfo(
            name=serde.take("name"),
            serializationLib=serde.take("library"),
            parameters=_parameters(serde),
            description=serde.take("description"),
            serializerClass=serde.take("serializer"),
            deserializerClass=serde.take("deserializer"),
            serdeType=serde.take("type"),
        ),
        bucketCols=list(fields.take("bucket_columns", ())),
        sortCols=[Order(column, order) for column, order in fields.take("sort_columns", ())],
        parameters=_parameters(fields),
        skewedInfo=SkewedInfo(
            skewedColNames=list(fields.take("skewed_columns", ())),
            skewedColValues=[list(values) for values in fields.take("skewed_values", ())],
            # Keys of a map must be hashable.
            skewedColValueLocationMaps={
                tuple(values): folder for values, folder in fields.take("skewed_locations", ())
            },
        ),
        storedAsSubDirectories=fields.take("subdirectories", False),
    )
    serde.end()
    fields.end()
    return descriptor


def _materialized(name: Name, fields: FieldReader) -> CreationMetadata | None:
    """Return the creation metadata of a materialized view; Thrift holds at most one row of it."""
    rows: list[Mapping[str, Any]] = list(fields.take("materialized", ()))
    for _ in rows[1:]:
        fields.report_field(fields.name, "materialized: another one")
    if not rows:
        return None
    # Hive stores table names without a catalog.
    tables = {".".join(parts[-2:]) for parts in rows[0].get("tables") or ()}
    return CreationMetadata(
        catName=name.catalog,
        dbName=name.database,
        tblName=name.table,
        tablesUsed=tables,
        validTxnList=rows[0].get("transactions"),
        materializationTime=rows[0].get("time"),
    )
