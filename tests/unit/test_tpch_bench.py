"""What stock means in the benchmark, and how its numbers are made."""

from __future__ import annotations

import pytest

from suites.matrix.tpch import bench, stock
from suites.matrix.tpch.queries import QUERIES

KIT = {
    "spark.master": "spark://one:7077",
    "spark.driver.host": "10.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:ActiveProcessorCount=2 -Duser.timezone=UTC -XX:+UseSerialGC",
    "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.executor.memory": "8g",
    "spark.sql.shuffle.partitions": "12",
    "spark.dynamicAllocation.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64m",
    "spark.cores.max": "3",
}


def test_a_stock_application_has_the_way_to_the_cluster_and_no_size_of_the_kit() -> None:
    found = stock.spark_properties(KIT)
    assert found["spark.master"] == KIT["spark.master"]
    assert found["spark.sql.catalog.iceberg"] == KIT["spark.sql.catalog.iceberg"]
    assert {found[key] for key in stock.JAVA} == {"-Duser.timezone=UTC"}
    assert not found.keys() & {
        "spark.executor.memory",
        "spark.sql.shuffle.partitions",
        "spark.dynamicAllocation.enabled",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    }
    assert int(found["spark.cores.max"]) > int(KIT["spark.cores.max"])


def test_a_stock_trino_has_the_kits_heap_and_no_limit() -> None:
    properties = {
        "coordinator": "true",
        "discovery.uri": "http://10.0.0.1:8090",
        "query.max-memory": "800MB",
        "plugin.dir": "/opt/plugins",
        "internal-communication.shared-secret": "${ENV:SECRET}",
        "node-scheduler.include-coordinator": "false",
    }
    node = stock.Node("one", properties, heap="1024m", options=("-XX:+UseSerialGC",))
    files = stock.trino_files(node, 8091)
    assert files["config.properties"].splitlines() == [
        "catalog.config-dir=/run/bench-stock/catalog",
        "coordinator=true",
        "discovery.uri=http://10.0.0.1:8091",
        "http-server.http.port=8091",
        "internal-communication.shared-secret=${ENV:SECRET}",
        "plugin.dir=/opt/plugins",
    ]
    jvm = files["jvm.config"].splitlines()
    assert "-Xmx1024m" in jvm
    assert jvm[-1] == "-XX:+UseSerialGC"
    assert not [option for option in jvm if "Percentage" in option]


def test_columns_have_the_names_and_types_of_the_specification() -> None:
    described = [("orderkey", "bigint", "", ""), ("totalprice", "double", "", "")]
    assert bench.columns(described, "o") == (
        "orderkey AS o_orderkey, CAST(totalprice AS DECIMAL(15, 2)) AS o_totalprice"
    )


def test_the_fraction_of_q11_follows_the_scale_factor() -> None:
    changed = [query.name for query in QUERIES if bench.text(query) != query.text]
    assert changed == ["q11"]


def test_the_ratio_is_the_geometric_mean_over_what_both_answered() -> None:
    times: bench.Times = {
        "kit": {"q01": [1.0, 3.0], "q02": [1.0], "q03": [1.0]},
        "stock": {"q01": [4.0], "q02": [8.0]},
    }
    assert bench.ratio(times) == pytest.approx(4.0)
