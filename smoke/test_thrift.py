"""The metastore answers a plain Thrift client, and many of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from suites.testbed import metastore
from suites.testbed.endpoints import Endpoints
from suites.testbed.tables import suffix

PARQUET = "org.apache.hadoop.hive.ql.io.parquet"


@pytest.fixture(scope="module")
def client(endpoints: Endpoints) -> Iterator[Any]:
    with metastore.Connection(endpoints.metastore, endpoints.users["spark"], (endpoints.group,)) as client:
        yield client


@pytest.fixture(scope="module")
def database(client: Any, endpoints: Endpoints) -> Iterator[Database]:
    name = f"smoke_thrift_{suffix()}"
    database = Database(name, None, f"{endpoints.warehouse}/hive/warehouse/{name}.db", {})
    client.create_database(database)
    yield database
    client.drop_database(name, deleteData=True, cascade=True)


@pytest.fixture
def table(client: Any, database: Database) -> Iterator[Table]:
    name = f"events_{suffix()}"
    serde = SerDeInfo(serializationLib=f"{PARQUET}.serde.ParquetHiveSerDe", parameters={})
    storage = StorageDescriptor(
        cols=[FieldSchema("id", "bigint"), FieldSchema("region", "string")],
        location=f"{database.locationUri}/{name}",
        inputFormat=f"{PARQUET}.MapredParquetInputFormat",
        outputFormat=f"{PARQUET}.MapredParquetOutputFormat",
        serdeInfo=serde,
        parameters={},
    )
    client.create_table(
        Table(
            tableName=name,
            dbName=database.name,
            sd=storage,
            # The metastore filters by partition keys of type string alone.
            partitionKeys=[FieldSchema("day", "string")],
            parameters={},
            tableType="MANAGED_TABLE",
        )
    )
    yield client.get_table(database.name, name)
    client.drop_table(database.name, name, True)


@pytest.mark.operation("get_all_databases", engine="metastore")
def test_databases(client: Any, database: Database, endpoints: Endpoints) -> None:
    assert {"default", database.name} <= set(client.get_all_databases())
    assert client.get_database(database.name).locationUri.startswith(endpoints.warehouse)


@pytest.mark.operation("create_table, get_table", engine="metastore")
def test_create_and_get(client: Any, database: Database, table: Table) -> None:
    assert client.get_all_tables(database.name) == [table.tableName]
    assert [(column.name, column.type) for column in table.sd.cols] == [
        ("id", "bigint"),
        ("region", "string"),
    ]
    assert table.sd.location == f"{database.locationUri}/{table.tableName}"
    with pytest.raises(NoSuchObjectException):
        client.get_table(database.name, "nobody_made_this")


@pytest.mark.operation("alter_table", engine="metastore")
def test_alter(client: Any, database: Database, table: Table) -> None:
    table.sd.cols.append(FieldSchema("note", "string", "added over Thrift"))
    table.parameters["owner.team"] = "smoke"
    client.alter_table(database.name, table.tableName, table)
    changed = client.get_table(database.name, table.tableName)
    assert [column.name for column in changed.sd.cols] == ["id", "region", "note"]
    assert changed.parameters["owner.team"] == "smoke"


@pytest.mark.operation("get_partitions", engine="metastore")
def test_partitions(client: Any, database: Database, table: Table) -> None:
    days = ["2024-01-15", "2024-02-15"]
    for day in days:
        storage = StorageDescriptor(**{**vars(table.sd), "location": f"{table.sd.location}/day={day}"})
        client.add_partition(
            Partition(
                values=[day], dbName=database.name, tableName=table.tableName, sd=storage, parameters={}
            )
        )
    assert [part.values for part in client.get_partitions(database.name, table.tableName, -1)] == [
        [d] for d in days
    ]
    found = client.get_partitions_by_filter(database.name, table.tableName, "day = '2024-02-15'", -1)
    assert [part.values for part in found] == [["2024-02-15"]]


@pytest.mark.operation("concurrent clients", engine="metastore")
def test_many_clients_at_once(endpoints: Endpoints, database: Database, table: Table) -> None:
    def read(_: int) -> list[str]:
        with metastore.Connection(
            endpoints.metastore, endpoints.users["spark"], (endpoints.group,)
        ) as client:
            return [client.get_table(database.name, table.tableName).tableName for _ in range(5)]

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(read, range(32)))
    assert answers == [[table.tableName] * 5] * 32
