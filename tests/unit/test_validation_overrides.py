"""A key that a component would ignore is named, with the one that was meant; one that it knows never is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from lakehouse import artifacts
from lakehouse.artifacts import manifest, releases
from lakehouse.dev import classfiles, componentkeys, keyfiles
from lakehouse.model import specs
from lakehouse.model.inventory import Host
from lakehouse.run import ROOT
from lakehouse.validation import Finding, Level, keylists, overrides, owned, variables
from tests.render import golden_files
from tests.unit.test_trino import a_class

each_component = pytest.mark.parametrize("component", overrides.NAMES)


def found(**variables: Any) -> list[Finding]:
    return overrides.keys(Host("n1", "10.0.0.1", frozenset(), variables))


@pytest.mark.parametrize(
    ("variable", "key", "meant", "component"),
    [
        ("hdfs_site", "dfs.replicaton", "dfs.replication", "Hadoop"),
        ("hdfs_core_site", "fs.trash.intervall", "fs.trash.interval", "Hadoop"),
        ("hdfs_core_site", "hadoop.proxyuser.hue.host", "hadoop.proxyuser.hue.hosts", "Hadoop"),
        ("hdfs_core_site", "iceberg.hive.lock-timeout", "iceberg.hive.lock-timeout-ms", "Iceberg"),
        ("hdfs_namenode_hdfs_site", "dfs.namenode.handler.cuont", "dfs.namenode.handler.count", "Hadoop"),
        ("hdfs_datanode_hdfs_site", "dfs.datanode.handler.cuont", "dfs.datanode.handler.count", "Hadoop"),
        ("hive_metastore_hive_site", "metastore.txn.timeot", "metastore.txn.timeout", "Hive"),
        (
            "hive_metastore_hive_site",
            "hive.metastore.server.max.thread",
            "hive.metastore.server.max.threads",
            "Hive",
        ),
        ("hive_metastore_hive_site", "fs.defaultFs", "fs.defaultFS", "Hadoop"),
        ("spark_defaults", "spark.sql.shufle.partitions", "spark.sql.shuffle.partitions", "Spark"),
        ("spark_thrift_defaults", "spark.executor.core", "spark.executor.cores", "Spark"),
        (
            "spark_connect_defaults",
            "spark.dynamicAllocation.minExecutor",
            "spark.dynamicAllocation.minExecutors",
            "Spark",
        ),
        (
            "spark_defaults",
            "spark.databricks.delta.retentionDurationChek.enabled",
            "spark.databricks.delta.retentionDurationCheck.enabled",
            "Delta",
        ),
        (
            "spark_defaults",
            "spark.databricks.delta.properties.defaults.enableDeletionVector",
            "spark.databricks.delta.properties.defaults.enableDeletionVectors",
            "Delta",
        ),
        (
            "spark_defaults",
            "spark.sql.iceberg.vectorisation.enabled",
            "spark.sql.iceberg.vectorization.enabled",
            "Iceberg",
        ),
        (
            "spark_defaults",
            "spark.sql.catalog.iceberg.wharehouse",
            "spark.sql.catalog.iceberg.warehouse",
            "Iceberg",
        ),
        (
            "spark_defaults",
            "spark.sql.catalog.iceberg.table-default.write.format.defualt",
            "spark.sql.catalog.iceberg.table-default.write.format.default",
            "Iceberg",
        ),
        ("spark_defaults", "spark.sql.catalog.icberg.uri", "spark.sql.catalog.iceberg.uri", "Iceberg"),
        ("flink_config", "taskmanager.numberOfTaskSlot", "taskmanager.numberOfTaskSlots", "Flink"),
        ("flink_config", "taskmanger.numberOfTaskSlots", "taskmanager.numberOfTaskSlots", "Flink"),
        (
            "flink_config",
            "execution.checkpointing.intervall",
            "execution.checkpointing.interval",
            "Flink",
        ),
        (
            "flink_config",
            "sql-gateway.endpoint.rest.adress",
            "sql-gateway.endpoint.rest.address",
            "Flink",
        ),
        (
            "flink_config",
            "cleanup-strategy.fixed-delay.attemps",
            "cleanup-strategy.fixed-delay.attempts",
            "Flink",
        ),
        ("flink_config", "fs.o4fs.limit.totl", "fs.o4fs.limit.total", "Flink"),
        ("flink_iceberg_catalog", "wharehouse", "warehouse", "Iceberg"),
        ("flink_iceberg_catalog", "hadoop-config-dir", "hadoop-conf-dir", "Flink"),
        ("flink_hive_catalog", "hive-config-dir", "hive-conf-dir", "Flink"),
        ("flink_hive_site", "hive.metastore.ursi", "hive.metastore.uris", "Flink"),
        ("flink_hive_site", "dfs.replicaton", "dfs.replication", "Hadoop"),
    ],
)
def test_a_misspelt_key(variable: str, key: str, meant: str, component: str) -> None:
    [finding] = found(**{variable: {key: 1}})
    version = keylists.version(component.lower())
    assert str(finding) == (
        f"WARN {component.lower()}.keys n1: {component} {version} has no key {key} ({variable}): "
        f"did you mean {meant}?"
    )


def test_a_misspelt_key_takes_nothing_away() -> None:
    [finding] = found(spark_defaults={"spark.localty.wait": None})
    assert finding.action == "did you mean spark.locality.wait?"


# What the version does not have any more, and what is long and only begins like a key.
@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("hdfs_site", "dfs.webhdfs.enabled"),
        ("spark_defaults", "spark.openlineage.transport.url"),
        ("spark_defaults", "spark.sql.catalog.iceberg.colour"),
    ],
)
def test_a_key_that_is_like_no_other(variable: str, key: str) -> None:
    [finding] = found(**{variable: {key: 1}})
    assert finding.action == "remove it, unless a program that you add reads it"


@pytest.mark.parametrize(
    ("variable", "keys"),
    [
        (
            "hdfs_core_site",
            [
                "fs.default.name",
                "fs.s3a.bucket.sales.endpoint",
                "fs.AbstractFileSystem.o4fs.impl",
                "fs.o4fs.impl",
                "hadoop.proxyuser.hue.hosts",
                "hadoop.security.group.mapping.provider.ldap",
                "ipc.8020.callqueue.impl",
                "mapreduce.fileoutputcommitter.algorithm.version",
            ],
        ),
        (
            "hdfs_site",
            [
                "dfs.nameservices",
                "dfs.ha.namenodes.other",
                "dfs.namenode.rpc-address.other.nn1",
                "dfs.namenode.shared.edits.dir.other",
                "dfs.client.failover.proxy.provider.other",
            ],
        ),
        ("hive_metastore_hive_site", ["hikari.maximumPoolSize", "javax.jdo.option.ConnectionURL"]),
        (
            "spark_defaults",
            [
                "spark.hadoop.fs.o4fs.impl",
                "spark.executorEnv.TZ",
                "spark.shuffle.io.maxRetries",
                "spark.ssl.historyServer.keyStore",
                "spark.executor.resource.gpu.amount",
                "spark.python.worker.memory",
                "spark.databricks.delta.properties.defaults.feature.deletionVectors",
                "spark.sql.catalog.iceberg.hadoop.fs.s3a.endpoint",
            ],
        ),
        (
            "flink_config",
            [
                "external-resources",
                "flink.hadoop.fs.o4fs.impl",
                "metrics.reporter.prom.factory.class",
                "metrics.reporter.prom.port",
                "state.backend.rocksdb.memory.managed",
                "state.checkpoints.num-retained",
                "table.exec.hive.infer-source-parallelism.mode",
                "table.exec.iceberg.use-flip27-source",
            ],
        ),
        ("flink_iceberg_catalog", ["clients", "io-impl", "s3.endpoint", "cache.expiration-interval-ms"]),
        ("flink_hive_catalog", ["default-database", "hive-version"]),
        ("flink_hive_site", ["hive.metastore.client.socket.timeout", "fs.o4fs.impl", "parquet.page.size"]),
    ],
)
def test_keys_that_people_make(variable: str, keys: list[str]) -> None:
    assert found(**{variable: dict.fromkeys(keys, 1)}) == []


def test_catalogs_of_ones_own() -> None:
    catalogs = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.uri": "thrift://other:9083",
        "spark.sql.catalog.sales": "com.example.Catalog",
        "spark.sql.catalog.sales.any.thing": 1,
    }
    assert found(spark_defaults=catalogs, spark_thrift_defaults={"spark.sql.catalog.lake.clients": 3}) == []
    [finding] = found(spark_defaults=catalogs, spark_connect_defaults={"spark.sql.catalog.lake.clinets": 3})
    assert finding.action == "did you mean spark.sql.catalog.lake.clients?"


def test_no_dict_has_no_findings() -> None:
    assert found() == found(spark_defaults=None) == found(hdfs_site={}) == []


def test_nothing_here_ends_a_run() -> None:
    assert {one.level for one in found(hdfs_site={"a.b": 1}, spark_defaults={"a.b": 1})} == {Level.WARNING}


# Which dict has the last word on a file of the golden trees.
FILES = {
    r"etc/hadoop/core-site\.xml": "hdfs_core_site",
    r"etc/hadoop/hdfs-site\.xml": "hdfs_site",
    r"etc/hadoop/(namenode|checkpoint)/hdfs-site\.xml": "hdfs_namenode_hdfs_site",
    r"etc/hadoop/datanode/hdfs-site\.xml": "hdfs_datanode_hdfs_site",
    r"etc/hive/(hive|metastore)-site\.xml": "hive_metastore_hive_site",
    r"etc/spark/spark-defaults\.conf": "spark_defaults",
    r"etc/spark/spark-master\.conf": "spark_master_defaults",
    r"etc/spark/spark-worker\.conf": "spark_worker_defaults",
    r"etc/spark/spark-history\.conf": "spark_history_defaults",
    r"etc/spark/spark-thrift\.conf": "spark_thrift_defaults",
    r"etc/spark/spark-connect\.conf": "spark_connect_defaults",
    r"etc/flink/config\.yaml": "flink_config",
    r"etc/flink/catalogs/iceberg\.yaml": "flink_iceberg_catalog",
    r"etc/flink/catalogs/hive\.yaml": "flink_hive_catalog",
    r"etc/flink/hive/hive-site\.xml": "flink_hive_site",
}


def written() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield what every rendered file says, by the dict that has the last word on it."""
    for files in golden_files.expected().values():
        for path, text in files.items():
            for pattern, variable in FILES.items():
                if re.search(rf"/{pattern}$", path):
                    yield variable, properties(path, text)


def properties(path: str, text: str) -> dict[str, str]:
    if path.endswith(".xml"):
        return {str(one.findtext("name")): str(one.findtext("value")) for one in ET.fromstring(text)}
    if path.endswith(".yaml"):
        return dict(yaml.safe_load(text))
    pairs = (line.partition("=") for line in text.splitlines() if line and line[0] != "#")
    return {key: value for key, _, value in pairs}


def test_every_key_that_the_kit_writes_is_known() -> None:
    seen = set()
    for variable, pairs in written():
        seen.add(variable)
        assert pairs, variable
        assert found(**{variable: pairs}) == []
    assert seen == overrides.DICTS.keys()


# Dicts with the last word on what others read: pgBackRest, PostgreSQL, the kit's own clients, and Trino, of
# which tests/unit/test_trino.py is.
OTHERS = {
    "backup_pgbackrest_settings",
    "monitoring_alertmanager",
    "monitoring_prometheus",
    "node_kernel",
    "postgresql_settings",
    "python_clients_settings",
    "trino_access_rules",
    "trino_config",
    "trino_log_levels",
    "trino_node",
}


def last_words() -> set[str]:
    """Return the dicts of people by which roles complete files other than units."""
    dicts = {name for name, option in variables.options(specs.every()).items() if option["type"] == "dict"}
    return {
        word
        for path in (ROOT / "roles").glob("*/vars/main.yml")
        for words in re.findall(r"\| overridden\(([^()]*)\)", path.read_text(encoding="utf-8"))
        for word in re.findall(r"\w+", words)
        if word in dicts and not re.match("lakehouse_|.*_unit_service$", word)
    }


def test_the_dicts_are_those_of_the_roles() -> None:
    assert last_words() == overrides.DICTS.keys() | OTHERS


@each_component
def test_the_keys_are_those_of_the_version_that_is_installed(component: str) -> None:
    bill = manifest.load(ROOT / "versions.yml", locked=False)
    assert keylists.version(component) == bill.versions[component], f"next: python -m {componentkeys.PROGRAM}"


@each_component
def test_the_keys_are_those_of_the_release(component: str) -> None:
    bill = manifest.load(ROOT / "versions.yml")
    archive = releases.archive(
        bill.component(componentkeys.COMPONENTS[component].release), artifacts.cache_dir()
    )
    if not archive.exists():
        pytest.skip(f"no {archive.name} in the cache")
    extracted = componentkeys.extracted(bill, component, archive)
    text = keyfiles.formatted(extracted, componentkeys.PROGRAM)
    assert text == keylists.path(component).read_text(encoding="utf-8")


def test_a_list_is_read_as_it_was_written() -> None:
    keys = [f"a.{'long-' * 9}key-{number}" for number in range(99)]
    sections = {"version": ["1"], "keys": keys, "connector none": []}
    text = keyfiles.formatted(sections, "a.program")
    assert keylists.parse(text) == {name: tuple(words) for name, words in sections.items()}
    assert max(map(len, text.splitlines())) <= keyfiles.WIDTH
    assert len(text.splitlines()) < len(keys)


def test_free_keys_are_of_a_component_or_a_dict() -> None:
    free = yaml.safe_load(overrides.FREE.read_text(encoding="utf-8"))
    assert free.keys() <= overrides.NAMES.keys() | overrides.DICTS.keys() | {"iceberg_catalog", "java"}
    del free["java"]  # flags, which are whole
    guard = (ROOT / "roles/hive_metastore/files/guard/GuardedStore.java").read_text(encoding="utf-8")
    for name, keys in free.items():
        assert all("*" in key or f'"{key}"' in guard for key in keys), name
        assert len(keys) == len(set(keys)), name


def test_strings_are_read_from_classes() -> None:
    data = a_class(b"Lx;", b"a.key")
    assert classfiles.strings(data) == set()
    # A string constant, the fifth entry of the pool that the number of eight bytes ends.
    pool_ends = data.index(b"\x05" + bytes(8))
    text = data[:8] + b"\x00\x08" + data[10:pool_ends] + b"\x08\x00\x04" + data[pool_ends:]
    assert classfiles.strings(text) == {"a.key"}
    assert classfiles.first_arguments(text + b"\x2a\x12\x05") == {"a.key"}
    assert classfiles.first_arguments(text + b"\x2a\x13\x00\x05") == {"a.key"}
    assert classfiles.first_arguments(text + b"\x12\x05") == set()
    assert classfiles.members_of_arrays(text + b"\x12\x05\x53") == {"a.key"}
    assert classfiles.static_arguments(text + b"\x12\x05\xb8") == {"a.key"}
    assert classfiles.static_arguments(text + b"\x12\x05\xb6") == set()


def test_examples_in_a_file_of_properties_become_stars() -> None:
    text = b"<x><name>ipc.[port_number].a</name><name>dfs.b.EXAMPLENAMESERVICE</name><name> c.d\n</name></x>"
    assert list(componentkeys.names_in_xml(text)) == ["ipc.*.a", "dfs.b.*", "c.d"]


def test_words_in_quotes() -> None:
    assert list(componentkeys.words_in_quotes(b"""get("spark.a.b", 'x y', f'{z}')""")) == ["spark.a.b"]


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"hdfs_core_site": {"fs.defaultFS": "hdfs://other"}}, 1),
        ({"hdfs_site": {"dfs.namenode.rpc-address.lake.nn1": "n9:9000"}}, 1),
        ({"hdfs_datanode_hdfs_site": {"dfs.datanode.data.dir": "/data", "dfs.datanode.failed": 1}}, 1),
        # Another cluster's nameservice, beside the own one.
        ({"hdfs_site": {"dfs.nameservices": "lake,far", "dfs.namenode.rpc-address.far.nn1": "x:9000"}}, 0),
        ({"trino_config": {"node-scheduler.include-coordinator": True, "coordinator": True}}, 1),
    ],
)
def test_a_key_that_a_variable_decides(settings: dict[str, Any], count: int) -> None:
    host = Host("n1", "10.0.0.1", frozenset(), {"lakehouse_nameservice": "lake", **settings})
    assert [finding.check for finding in owned.contradictions(host)] == ["settings.owned"] * count
