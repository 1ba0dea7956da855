"""A setting that a component takes and that undoes what a page promises is named, with the promise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lakehouse.model import defaults
from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import ROOT
from lakehouse.validation import Level, overrides, promises, trino
from lakehouse.validation.promises import Promise

# The dicts that a role combines with those of the inventory.
OWN = {
    "spark_defaults": ("spark", "_spark_defaults"),
    "flink_config": ("flink", "_flink_config"),
    "flink_iceberg_catalog": ("flink", "_flink_iceberg_catalog"),
    "hive_metastore_hive_site": ("hive_metastore", "_hive_metastore_hive_site"),
}
ROWS = promises.promises()


def lines(datanodes: int = 3, **variables: Any) -> list[str]:
    names = [f"n{number}" for number in range(1, datanodes + 1)]
    hosts = [Host(name, "10.0.0.1", frozenset({"datanodes"}), variables) for name in names]
    return list(map(str, promises.undone(hosts[0], Inventory(Path("inventory"), tuple(hosts)))))


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (
            {"spark_defaults": {"spark.sql.session.timeZone": "Europe/Berlin"}},
            "WARN settings.promise n1: spark_defaults has spark.sql.session.timeZone: Europe/Berlin, which"
            " undoes a promise: every session is in UTC, so that one instant is the same in all engines"
            " (expected UTC): remove it, or read docs/across-engines.md#wrong-rows-in-silence first",
        ),
        (
            {"spark_connect_defaults": {"spark.sql.catalog.spark_catalog": None}},
            "WARN settings.promise n1: spark_connect_defaults removes spark.sql.catalog.spark_catalog, which"
            " undoes a promise: Spark makes Delta tables in spark_catalog, and reads those that are there"
            " (expected org.apache.spark.sql.delta.catalog.DeltaCatalog): remove it, or read"
            " docs/decisions/0004-catalogs.md first",
        ),
        (
            {"hdfs_replication": 1},
            "WARN settings.promise n1: hdfs_replication is 1, which undoes a promise: a table is whole"
            " while one DataNode is down (expected not 1): remove it, or read"
            " docs/operations.md#a-node-is-down first",
        ),
    ],
)
def test_a_line_names_the_promise_and_its_page(variables: dict[str, Any], line: str) -> None:
    assert lines(**variables) == [line]


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        (
            {"spark_defaults": {"spark.sql.catalog.spark_catalog": f"org.apache.iceberg.spark.{name}"}},
            "spark.sql.catalog.spark_catalog",
        )
        for name in ("SparkSessionCatalog", "SparkCatalog")
    ] + [
        ({"spark_defaults": {"spark.databricks.delta.properties.defaults.columnMapping.mode": "name"}},
         "columnMapping.mode"),
        ({"spark_thrift_defaults": {"spark.sql.filesourceTableRelationCacheSize": 1000}}, "CacheSize"),
        ({"flink_config": {"table.local-time-zone": "America/New_York"}}, "local-time-zone"),
        ({"flink_config": {"execution.runtime-mode": "STREAMING"}}, "runtime-mode"),
        ({"flink_iceberg_catalog": {"cache-enabled": True}}, "cache-enabled"),
        ({"hdfs_site": {"dfs.permissions.enabled": False}}, "dfs.permissions.enabled"),
        ({"hdfs_namenode_hdfs_site": {"dfs.permissions.enabled": "FALSE"}}, "dfs.permissions.enabled"),
        ({"hdfs_site": {"dfs.replication": "1"}}, "dfs.replication"),
        ({"hive_metastore_hive_site": {"metastore.rawstore.impl": "x.ObjectStore"}},
         "metastore.rawstore.impl"),
        ({"trino_catalog_properties": {"delta": {"delta.security": "ALLOW_ALL"}}}, "delta.security"),
        ({"trino_catalog_properties": {"delta": {"delta.enable-non-concurrent-writes": True}}},
         "non-concurrent-writes"),
        ({"trino_catalog_properties": {"iceberg": {"hive.metastore-cache-ttl": "24h"}}},
         "metastore-cache-ttl"),
        ({"trino_catalog_properties": {"hive": {"hive.timestamp-precision": None}}}, "timestamp-precision"),
        ({"trino_catalog_properties": {"hive": {"hive.file-status-cache-tables": "*"}}}, "file-status-cache"),
        ({"trino_catalogs": [{"name": "old", "like": "hive", "properties": {
            "hive.hdfs.impersonation.enabled": False}}]}, "hdfs.impersonation"),
        ({"trino_catalogs": [{"name": "far", "properties": {
            "connector.name": "delta_lake", "hive.metastore.uri": "x", "delta.security": "ALLOW_ALL"}}]},
         "delta.security"),
    ],
)  # fmt: skip
def test_what_people_bring_along_is_named_once(variables: dict[str, Any], key: str) -> None:
    [line] = lines(**variables)
    assert key in line


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"spark_defaults": {"spark.sql.session.timeZone": "utc", "spark.locality.wait": "1s"}},
        {"spark_defaults": {"spark.databricks.delta.properties.defaults.columnMapping.mode": None}},
        {"spark_defaults": "not a dict: another check says so"},
        {"trino_catalog_properties": {"delta": None, "hive": {"hive.metastore-cache-ttl": "0s"}}},
        {"trino_catalog_properties": {"nowhere": {"delta.security": "ALLOW_ALL"}}},
        {"trino_catalogs": [{"name": "x", "properties": {"connector.name": "mysql"}}, None]},
    ],
)
def test_what_undoes_nothing_has_no_line(variables: dict[str, Any]) -> None:
    assert lines(**variables) == []


def test_one_copy_is_all_that_one_datanode_can_hold() -> None:
    assert lines(1, hdfs_replication=1, hdfs_site={"dfs.replication": 1}) == []


@pytest.mark.parametrize("lost", ["io.delta.sql.DeltaSparkSessionExtension", "IcebergSparkSessionExtensions"])
@pytest.mark.parametrize("is_text", [True, False])
def test_an_extension_that_is_left_out_is_named(lost: str, is_text: bool) -> None:
    own = defaults.role("spark")["_spark_defaults"]["spark.sql.extensions"]
    left = [*(one for one in own if lost not in one), "my.Extension"]
    assert len(left) == len(own)
    [line] = lines(spark_defaults={"spark.sql.extensions": ", ".join(left) if is_text else left})
    assert f"(expected {next(one for one in own if lost in one)} in it)" in line
    assert lines(spark_defaults={"spark.sql.extensions": [*own, "my.Extension"]}) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_the_kit_keeps_its_own_promises(row: Promise) -> None:
    """A value of its own that a row says nothing of would be a row that nothing needs."""
    for variable in row.of:
        role, name = OWN.get(variable, ("", ""))
        own = defaults.role(role)[name] if role else {}
        if row.key in own:
            assert not row.is_undone_by(own[row.key])
        elif variable in OWN:
            assert not row.is_undone_by(None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_a_row_is_about_a_key_that_the_component_has(row: Promise) -> None:
    for variable in set(row.of) & overrides.DICTS.keys():
        host = Host("n1", "", frozenset(), {variable: {row.key: "x"}})
        assert [one for one in overrides.keys(host) if one.level is Level.WARNING] == []
    for connector in row.connectors:
        keys = trino.known_keys()
        assert row.key in keys.catalogs | keys.connectors[connector]


@pytest.mark.parametrize("page", sorted({row.page for row in ROWS}))
def test_the_page_of_a_promise_is_there(page: str) -> None:
    name, _, anchor = page.partition("#")
    text = (ROOT / "docs" / name).read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert not anchor or anchor in anchors


def test_a_long_value_is_cut() -> None:
    [line] = lines(spark_defaults={"spark.sql.session.timeZone": "x" * 10_000 + "\n"})
    assert len(line) < 500
    assert "\n" not in line
