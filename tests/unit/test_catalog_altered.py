"""What an alter of the metastore leaves as it is, and what engines have counted, which is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore import ttypes as hive
from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from lakehouse.catalog.names import Name
from lakehouse.catalog.restoring import Operation, Step
from lakehouse.cluster_catalog import alter, grants_and_constraints
from lakehouse.metastore import bindings

TABLE = Name("hive", "d", "t")
COUNTED = {
    "numRows": "7",
    "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
    "spark.sql.statistics.numRows": "7",
    "spark.sql.statistics.colStats.a.min": "1",
}


def stored(*columns: str, location: str = "hdfs://lake/t", **serde: str) -> dict[str, Any]:
    found = [{"name": one, "type": "int"} for one in columns]
    return {"storage": {"columns": found, "location": location, "serde": serde}}


def step(kind: str, now: Any, then: Any, deed: Operation = Operation.ALTER) -> Step:
    return Step(deed, kind, TABLE, now, then)


@pytest.mark.parametrize(
    ("then", "kept"),
    [
        (stored("a"), set(COUNTED)),
        (stored("a", "b"), {"numRows", "spark.sql.statistics.numRows"}),
        (stored("a", location="hdfs://lake/other"), set()),
    ],
)
def test_what_was_counted_stays_as_far_as_it_is_true(then: dict[str, Any], kept: set[str]) -> None:
    there = hive.Table(parameters={**COUNTED, "mine": "1"}, lastAccessTime=3)
    found = alter.kept_volatile(step("table", stored("a"), then), there)
    assert set(found.get("parameters", {})) == kept


def test_what_spark_has_counted_is_of_the_folder_that_it_knows() -> None:
    """The metastore has a placeholder of it, and no column."""

    def spark(folder: str, *columns: str) -> dict[str, Any]:
        said = stored("col", location="hdfs://lake/t-__PLACEHOLDER__", parameters={"path": folder})  # type: ignore[arg-type]
        schema = {"spark.sql.sources.provider": "csv", "spark.sql.sources.schema": ",".join(columns)}
        return said | {"parameters": schema}

    there = hive.Table(parameters=COUNTED, lastAccessTime=3)

    def kept(then: dict[str, Any]) -> set[str]:
        return set(
            alter.kept_volatile(step("table", spark("hdfs://lake/a", "a"), then), there).get("parameters", {})
        )

    assert kept(spark("hdfs://lake/a", "a")) == set(COUNTED)
    assert kept(spark("hdfs://lake/a", "a", "b")) == {"numRows", "spark.sql.statistics.numRows"}
    assert kept(spark("hdfs://lake/b", "a")) == set()


def test_what_is_made_has_nothing_counted() -> None:
    assert alter.kept_volatile(step("table", None, stored("a"), Operation.MAKE), None) == {}


def test_what_engines_write_beside_is_no_change() -> None:
    one = hive.Partition(values=["1"], parameters={"mine": "1"}, lastAccessTime=0)
    other = hive.Partition(values=["1"], parameters={"mine": "1", **COUNTED}, lastAccessTime=9)
    changed = hive.Partition(values=["1"], parameters={"mine": "2"}, lastAccessTime=0)
    assert alter.without_volatile(one) == alter.without_volatile(other) != alter.without_volatile(changed)
    assert "numRows" in other.parameters
    assert alter.without_volatile(None) is None


def told(kind: str, now: Any, then: Any) -> list[str]:
    lost: list[str] = []
    alter.report_unaltered(step(kind, now, then), lambda name, field: lost.append(f"{name} {field}"))
    return lost


def test_what_an_alter_leaves_is_told() -> None:
    assert told("database", {"description": "x"}, {}) == ["hive.d.t no description"]
    assert told("database", {}, {"description": "x"}) == []
    serde = {"library": "l", "serializer": "s"}
    assert told("table", stored("a", **serde), stored("a", library="m")) == ["hive.d.t serde serializer"]


def test_a_function_with_other_resources_is_made_anew() -> None:
    jar, other = {"resources": [["JAR", "hdfs://a"]]}, {"resources": [["JAR", "hdfs://b"]]}
    assert alter.must_recreate(step("function", jar, other))
    assert not alter.must_recreate(step("function", {**jar, "owner": "a"}, jar))


def test_a_foreign_key_to_what_has_gone_is_told_and_the_others_are_written() -> None:
    calls: list[tuple[str, list[str]]] = []
    lost: list[str] = []
    asked: list[tuple[Any, ...]] = []

    def call(method: str, *arguments: Any) -> None:
        if arguments == ("sales", "x"):
            raise hive.NoSuchObjectException("hive.sales.x table not found")
        asked.append(arguments)
        keys = getattr(arguments[0], "foreignKeyCols", ())
        if [key.fk_name for key in keys] == ["other"]:
            raise hive.InvalidObjectException("Parent columns not unique")
        calls.append((method, [key.fk_name for key in keys]))

    rows: list[dict[str, Any]] = [
        {"name": "pk", "type": 0, "column": "a", "position": 1},
        {"name": "gone", "type": 1, "column": "a", "references": ["hive", "sales", "x", "a"]},
        {"name": "other", "type": 1, "column": "a", "references": ["hive", "d", "x", "c"]},
        {"name": "two", "type": 1, "column": "a", "references": ["hive", "d", "x", "a"]},
        {"name": "two", "type": 1, "column": "b", "position": 1, "references": ["hive", "d", "x", "b"]},
    ]
    made = step("table", None, {"constraints": rows}, Operation.MAKE)
    grants_and_constraints.add_constraints(call, [made], lambda name, field: lost.append(f"{name} {field}"))
    assert [one for one in calls if one[0] != "get_table"] == [
        ("add_primary_key", []),
        ("add_foreign_key", ["two", "two"]),
    ]
    assert lost == [
        "hive.d.t foreign key gone (hive.sales.x table not found)",
        "hive.d.t foreign key other (Parent columns not unique)",
    ]
    elsewhere = Step(Operation.MAKE, "table", Name("x", "d", "t"), None, {"constraints": rows[2:3]})
    grants_and_constraints.add_constraints(call, [elsewhere], lambda *_: None)
    assert asked[-2] == ("@x#d", "x")


@pytest.mark.parametrize("protocol", [TBinaryProtocol, TBinaryProtocolAccelerated])
def test_places_of_skewed_values_are_read(protocol: Any) -> None:
    bindings.fix_skewed_info()
    skewed = hive.SkewedInfo(["a", "b"], [["1", "2"]], {("1", "2"): "hdfs://lake/t/a=1"})
    table = hive.Table(tableName="t", sd=hive.StorageDescriptor(skewedInfo=skewed), owner="ann")
    buffer = TMemoryBuffer()
    table.write(protocol(buffer))
    found = hive.Table()
    found.read(protocol(TMemoryBuffer(buffer.getvalue())))
    assert (found.sd.skewedInfo, found.owner) == (skewed, "ann")
