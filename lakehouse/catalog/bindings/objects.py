"""Catalogs, databases, functions, tables and partitions as Thrift has them."""

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

from lakehouse.catalog.bindings.field_reader import Lost, Taken
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name

# What a commit says for itself, or where another call of the interface tells it.
_ELSEWHERE = "data", "constraints", "privileges"


def catalog(name: Name, said: Document, lost: Lost) -> Catalog:
    """Return a catalog."""
    fields = Taken(said, str(name), lost)
    made = Catalog(
        name=name.catalog, description=fields.take("description"), locationUri=fields.take("location", "")
    )
    fields.end()
    return made


def database(name: Name, said: Document, lost: Lost) -> Database:
    """Return a database."""
    fields = Taken(said, str(name), lost)
    made = Database(
        name=name.database,
        description=fields.take("description"),
        locationUri=fields.take("location", ""),
        parameters=_parameters(fields),
        ownerName=fields.take("owner"),
        ownerType=principal(fields.take("owner_type")),
        catalogName=name.catalog,
    )
    fields.end(*_ELSEWHERE)
    return made


def function(name: Name, said: Document, lost: Lost) -> Function:
    """Return a function."""
    fields = Taken(said, str(name), lost)
    made = Function(
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
    return made


def table(name: Name, said: Document, lost: Lost, volatile: Document | None = None) -> Table:
    """Return a table or a view, with what is `volatile` of it where that is wanted."""
    fields, beside = Taken(said, str(name), lost), dict(volatile or {})
    made = Table(
        tableName=name.table,
        dbName=name.database,
        catName=name.catalog,
        owner=fields.take("owner"),
        ownerType=principal(fields.take("owner_type")),
        createTime=fields.take("created", 0),
        lastAccessTime=beside.get("last_access", 0),
        retention=fields.take("retention", 0),
        sd=_storage(fields.below("storage")),
        partitionKeys=_columns(fields, "partition_keys"),
        parameters=_parameters(fields) | beside.get("parameters", {}),
        viewOriginalText=fields.take("view_as_written"),
        viewExpandedText=fields.take("view"),
        tableType=fields.take("type"),
        rewriteEnabled=fields.take("rewrite", False),
        creationMetadata=_materialized(name, fields),
    )
    fields.end(*_ELSEWHERE)
    return made


def partition(name: Name, said: Document, lost: Lost, volatile: Document | None = None) -> Partition:
    """Return a partition whose document is whole: with what it shares with others."""
    fields, beside = Taken(said, str(name), lost), dict(volatile or {})
    fields.take("name")
    made = Partition(
        values=list(fields.take("values", ())),
        dbName=name.database,
        tableName=name.table,
        catName=name.catalog,
        createTime=fields.take("created", 0),
        lastAccessTime=beside.get("last_access", 0),
        sd=_storage(fields.below("storage"), fields.take("location")),
        parameters=_parameters(fields) | beside.get("parameters", {}),
    )
    fields.end(*_ELSEWHERE)
    return made


def principal(word: str | None) -> int:
    """Return the number of a kind of principal; a user's for none."""
    return int(PrincipalType._NAMES_TO_VALUES[word or "USER"])


def _parameters(fields: Taken) -> dict[str, str]:
    # Hive, too, leaves out what is null: no text can say it.
    return {key: value for key, value in fields.take("parameters", {}).items() if value is not None}


def _columns(fields: Taken, key: str) -> list[FieldSchema]:
    found = []
    for one in fields.each(key):
        found.append(FieldSchema(one.take("name"), one.take("type"), one.take("comment")))
        one.end()
    return found


def _storage(fields: Taken, location: str | None = None) -> StorageDescriptor:
    serde = fields.below("serde")
    made = StorageDescriptor(
        cols=_columns(fields, "columns"),
        location=location or fields.take("location"),
        inputFormat=fields.take("input_format"),
        outputFormat=fields.take("output_format"),
        compressed=fields.take("compressed", False),
        # Of a bucketed table; a commit has no number for one that is not.
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
            # Keys of a map have to be hashable, which a list is not.
            skewedColValueLocationMaps={
                tuple(values): place for values, place in fields.take("skewed_locations", ())
            },
        ),
        storedAsSubDirectories=fields.take("subdirectories", False),
    )
    serde.end()
    fields.end()
    return made


def _materialized(name: Name, fields: Taken) -> CreationMetadata | None:
    """Return of what a materialized view was made; there is one at most."""
    found: list[Mapping[str, Any]] = list(fields.take("materialized", ()))
    for _ in found[1:]:
        fields.lost(fields.name, "materialized: another one")
    if not found:
        return None
    # Hive names them without their catalog.
    tables = {".".join(words[-2:]) for words in found[0].get("tables") or ()}
    return CreationMetadata(
        catName=name.catalog,
        dbName=name.database,
        tblName=name.table,
        tablesUsed=tables,
        validTxnList=found[0].get("transactions"),
        materializationTime=found[0].get("time"),
    )
