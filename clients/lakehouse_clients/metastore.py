"""Rows of the Hive Metastore for Delta tables, which PyIceberg does not support."""

from __future__ import annotations

from typing import Any

from hive_metastore.ttypes import (
    FieldSchema,
    NoSuchObjectException,
    SerDeInfo,
    StorageDescriptor,
)
from hive_metastore.ttypes import Table as Row

from lakehouse_clients.delta import in_hdfs
from lakehouse_clients.errors import ClientError
from lakehouse_clients.names import FORMATS, Name


def row(client: Any, name: Name) -> Any:
    """Return the row of a table; ClientError if there is none."""
    try:
        return client.get_table(*name.identifier)
    except NoSuchObjectException:
        raise ClientError(f"no table {name}", "print(lake.tables())") from None


def format_of(parameters: dict[str, str]) -> str | None:
    """Return `iceberg` or `delta` by the parameters that engines write; None for other tables."""
    kind = (parameters.get("spark.sql.sources.provider") or parameters.get("table_type") or "").lower()
    return kind if kind in FORMATS else None


def formats(client: Any, database: str) -> dict[str, str]:
    """Return the Iceberg and Delta tables of a database with their formats."""
    rows = client.get_table_objects_by_name(database, client.get_all_tables(database))
    return {table.tableName: kind for table in rows if (kind := format_of(table.parameters))}


def new_table_path(client: Any, name: Name) -> str:
    """Return the folder for a new table: that of its database and its name."""
    try:
        folder = str(client.get_database(name.database).locationUri).rstrip("/")
    except NoSuchObjectException:
        raise ClientError(
            f"no database {name.database}", f"CREATE DATABASE {name.database} LOCATION '...' in Spark"
        ) from None
    return f"{in_hdfs(name.database, folder)}/{name.table}"


def delta_row(name: Name, path: str, owner: str) -> Row:
    """Return the row by which Spark and Trino identify a Delta table; its columns are only in its log."""
    return Row(
        tableName=name.table,
        dbName=name.database,
        owner=owner,
        tableType="EXTERNAL_TABLE",
        partitionKeys=[],
        parameters={
            "EXTERNAL": "TRUE",
            "spark.sql.sources.provider": "delta",
            "spark.sql.sources.schema": '{"type":"struct","fields":[]}',
            "spark.sql.partitionProvider": "catalog",
        },
        sd=StorageDescriptor(
            cols=[FieldSchema("col", "array<string>", "from deserializer")],
            location=path,
            inputFormat="org.apache.hadoop.mapred.SequenceFileInputFormat",
            outputFormat="org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
            serdeInfo=SerDeInfo(
                serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                parameters={"serialization.format": "1", "path": path},
            ),
        ),
    )
