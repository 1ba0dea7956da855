"""Which tables and databases have their files in each other's folders, and which of them may."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ttypes import Database, SerDeInfo, StorageDescriptor, Table

from lakehouse.catalog.shared_files import SHARED, Place, overlaps
from lakehouse.tables import risky

HIVE: dict[str, Any] = {"type": "EXTERNAL_TABLE", "parameters": {"EXTERNAL": "TRUE"}}
PURGED: dict[str, Any] = {"type": "EXTERNAL_TABLE", "parameters": {"external.table.purge": "TRUE"}}
MANAGED: dict[str, Any] = {"type": "MANAGED_TABLE", "parameters": {}}
ICEBERG: dict[str, Any] = {
    "type": "EXTERNAL_TABLE",
    "parameters": {"table_type": "ICEBERG", "metadata_location": "m"},
}
DELTA: dict[str, Any] = {"type": "EXTERNAL_TABLE", "parameters": {"spark.sql.sources.provider": "delta"}}
ON_PURPOSE: dict[str, Any] = {"type": "MANAGED_TABLE", "parameters": {SHARED: "true"}}
NONE: dict[str, Any] = {"parameters": {}}


def found(*places: Place) -> list[tuple[str, str]]:
    return [(str(one), str(other)) for one, other in overlaps(places)]


@pytest.mark.parametrize(
    ("one", "other", "below", "allowed"),
    [
        (ICEBERG, ICEBERG, "", False),
        (ICEBERG, ICEBERG, "/b", False),
        (HIVE, HIVE, "", True),
        (HIVE, HIVE, "/b", True),
        (HIVE, PURGED, "", False),
        (HIVE, ICEBERG, "/data", False),
        (HIVE, MANAGED, "", False),
        (DELTA, DELTA, "", True),
        (DELTA, DELTA, "/b", False),
        (DELTA, HIVE, "", False),
        (ON_PURPOSE, MANAGED, "/b", True),
        (ICEBERG, ON_PURPOSE, "", True),
    ],
)
def test_two_tables_in_one_folder(
    one: dict[str, Any], other: dict[str, Any], below: str, allowed: bool
) -> None:
    pair = Place("/w/d/t", "d", "t", one), Place(f"/w/d/t{below}", "d", "u", other)
    assert bool(found(*pair)) is not allowed
    assert bool(found(*reversed(pair))) is not allowed


def test_a_name_that_begins_alike_is_no_folder_above() -> None:
    names = ("/w/d/t", "/w/d/t-1/x", "/w/d/t_1", "/w/d/t!/a")
    assert found(*(Place(path, "d", str(number), MANAGED) for number, path in enumerate(names))) == []


def test_tables_are_in_their_own_database_and_databases_in_the_default_one() -> None:
    default, own, other = (
        Place(path, name, "", NONE) for path, name in (("/w", "default"), ("/w/d", "d"), ("/w/e", "e"))
    )
    table = Place("/w/d/t", "d", "t", MANAGED)
    assert found(default, own, other, table) == []
    stray, twin, whole = (
        Place("/w/e/u", "d", "u", HIVE), Place("/w/e", "f", "", NONE), Place("/w/d", "d", "v", MANAGED),
    )  # fmt: skip
    assert found(default, own, other, stray) == [("table d.u", "database e")]
    assert found(default, other, twin) == [("database f", "database e")]
    assert ("table d.v", "database d") in found(default, own, whole)
    assert found(own, Place("/w/d/f", "f", "", NONE)) == [("database f", "database d")]


def table(database: str, name: str, location: str, kind: str = "MANAGED_TABLE", path: str = "") -> Table:
    serde = SerDeInfo(parameters={"path": path} if path else {})
    return Table(
        name, database, tableType=kind, parameters={}, sd=StorageDescriptor([], location, serdeInfo=serde)
    )


def test_it_is_a_finding_of_risky_tables_that_names_both() -> None:
    databases = [
        Database("d", locationUri="hdfs://lake/w/d", parameters={}),
        Database("e", locationUri="/w/d"),
    ]
    tables = [
        table("d", "o", "hdfs://lake/w/d/o"),
        table("d", "o_old", "hdfs://host:8020/w/d//o/"),
        table("d", "real", "hdfs://lake/w/d/real-__PLACEHOLDER__", path="hdfs://lake/x/real"),
        table("d", "inner", "hdfs://lake/x/real/inner"),
        table("d", "view", "hdfs://lake/w/d/o", kind="VIRTUAL_VIEW"),
    ]
    findings = {one.table: str(one) for one in risky.shared_locations(databases, tables)}
    # What is in d is in e, too: its tables are named with that.
    assert "d.o_old (hive) location: lost files: /w/d/o is the location of table d.o" in findings["d.o_old"]
    assert "/x/real/inner lies in the location of table d.real" in findings["d.inner"]
    assert "/w/d is the location of database d" in findings["e"]
    assert findings.keys() >= {"d.o_old", "d.inner", "e"}
    assert not {"d.view", "d.real"} & findings.keys()
