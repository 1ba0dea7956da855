"""One model for tables of every format: a document becomes Thrift's object, and that the same document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hive_metastore import ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from lakehouse.catalog.bindings import objects
from lakehouse.catalog.names import Name
from lakehouse.metastore import model
from tests.unit.test_catalog_bindings import Lost

# As engines write them, by a word for each kind.
GOLDEN: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("data").joinpath("metastore_tables.json").read_text(encoding="utf-8")
)


@pytest.fixture
def lost() -> Lost:
    return Lost()


def over_the_wire(found: Any) -> Any:
    """Return it as a client reads it."""
    buffer = TMemoryBuffer()
    found.write(TBinaryProtocolAccelerated(buffer))
    read = type(found)()
    read.read(TBinaryProtocolAccelerated(TMemoryBuffer(buffer.getvalue())))
    return read


@pytest.mark.parametrize("kind", GOLDEN)
def test_a_table_of_each_format_makes_the_round(kind: str, lost: Lost) -> None:
    golden = GOLDEN[kind]
    name = Name("hive", "sales", kind)
    sent = objects.table(name, golden["document"], lost, golden["volatile"])
    found = model.table(over_the_wire(sent), lost)
    assert found == model.Described(name, golden["document"], golden["volatile"])
    assert found.format == golden["format"]
    assert lost.told == []


def test_every_format_is_among_them() -> None:
    assert {one["format"] for one in GOLDEN.values()} == {"hive", "iceberg", "delta", "hudi", "view"}


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("EXTERNAL_TABLE", {"table_type": "ICEBERG", "metadata_location": "hdfs://lake/m.json"}, "iceberg"),
        ("MANAGED_TABLE", {"table_type": "iceberg", "metadata_location": "hdfs://lake/m.json"}, "iceberg"),
        ("ICEBERG", {}, "hive"),
        ("EXTERNAL_TABLE", {"table_type": "ICEBERG"}, "hive"),
    ],
)
def test_iceberg_is_known_by_its_parameters_and_never_by_the_type(
    kind: str, parameters: dict[str, str], expected: str, lost: Lost
) -> None:
    found = ttypes.Table(dbName="d", tableName="t", tableType=kind, parameters=parameters)
    assert model.table(found, lost).format == expected


def test_a_database_and_a_partition_make_the_round(lost: Lost) -> None:
    said = {"location": "hdfs://lake/d", "owner": "ann", "owner_type": "ROLE", "parameters": {"a": "b"}}
    name = Name("hive", "sales")
    found = model.database(over_the_wire(objects.database(name, said, lost)), lost)
    assert (found.name, found.document) == (name, said)
    storage = {**GOLDEN["hive"]["document"]["storage"]}
    place = storage.pop("location")
    one = {
        "name": "day=2026-01-01", "values": ["2026-01-01"], "location": f"{place}/day=2026-01-01",
        "created": 1_700_000_000, "parameters": {"why": "because"}, "storage": storage,
    }  # fmt: skip
    volatile = {"parameters": {"numRows": "9"}, "last_access": 5}
    name = Name("hive", "sales", "hive", "day=2026-01-01")
    sent = objects.partition(name, one, lost, volatile)
    assert model.partition(name.partition, over_the_wire(sent), lost) == model.Described(name, one, volatile)
    assert lost.told == []


def test_what_a_younger_metastore_says_beside_it_is_told(lost: Lost) -> None:
    storage = ttypes.StorageDescriptor(serdeInfo=ttypes.SerDeInfo(name="s"))
    found = ttypes.Table(dbName="d", tableName="t", id=7, writeId=3, accessType=8, sd=storage)
    assert model.table(found, lost).document == {"owner_type": "USER", "storage": {"serde": {"name": "s"}},
                                                 "data": {"format": "hive"}}  # fmt: skip
    model.database(ttypes.Database(name="d", managedLocationUri="hdfs://lake/managed"), lost)
    assert lost.told == [
        ("hive.d.t", "accessType"), ("hive.d.t", "writeId"), ("hive.d", "managedLocationUri"),
    ]  # fmt: skip
