"""Inventories without golden files: what each has otherwise than one that has them, and nothing else.

Its rendering is that of the other one, host by host and file by file, but for the files of services that are
elsewhere and for the settings that stand here. So a change of any of its files fails a test: here, or that of
the golden files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from xml.etree import ElementTree as ET

import pytest

from tests.render import rendering

Rendered = dict[str, dict[str, str]]

NAMENODE = {
    "etc/hadoop/checkpoint/hdfs-site.xml",
    "etc/hadoop/namenode/hdfs-site.xml",
    "etc/systemd/system/hdfs-checkpoint.service",
    "etc/systemd/system/hdfs-checkpoint.timer",
    "etc/systemd/system/hdfs-namenode.service",
}
TRINO_CLIENT = (
    '-jar "/opt/trino-cli/current/cli"/trino-cli-*.jar --server "http://192.168.1.184:8090" --catalog iceberg'
    ' --timezone UTC "$@'
)
FEDERATION = "etc/trino/catalog/postgresql.properties"
NODE_EXPORTER = "etc/systemd/system/lakehouse-node-exporter.service"
# Of the hosts of PostgreSQL and of Prometheus.
MONITORING = {
    "cpu-node1": {NODE_EXPORTER, "etc/systemd/system/lakehouse-postgres-exporter.service"},
    "cpu-node2": {NODE_EXPORTER},
    "worker-node3": {
        NODE_EXPORTER,
        "etc/lakehouse-monitoring/own-rules.yml",
        "etc/lakehouse-monitoring/probe-exporter.json",
        "etc/lakehouse-monitoring/prometheus.yml",
        "etc/lakehouse-monitoring/rules.yml",
        "etc/systemd/system/lakehouse-alertmanager.service",
        "etc/systemd/system/lakehouse-probe-exporter.service",
        "etc/systemd/system/lakehouse-prometheus.service",
    },
}
# `node_java_options` of inventory/local.
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
EXECUTORS = "*/etc/spark/spark-{}.conf"
SPARK = ("connect", "defaults", "thrift")
TASKMANAGER = (
    "heartbeat.timeout=180000",
    "taskmanager.cpu.cores=2",
    "taskmanager.memory.jvm-overhead.max=128mb",
    "taskmanager.memory.jvm-overhead.min=128mb",
    "taskmanager.memory.managed.size=184mb",
    "taskmanager.memory.network.max=84mb",
    "taskmanager.memory.network.min=84mb",
    "taskmanager.memory.task.heap.size=320mb",
    "taskmanager.numberOfTaskSlots=2",
)
LARGER_TASKMANAGER = (
    "taskmanager.memory.managed.size=218mb",
    "taskmanager.memory.network.max=70mb",
    "taskmanager.memory.network.min=70mb",
)


@dataclass(frozen=True)
class Variant:
    """An inventory: the one that it is `like`, and what it has otherwise.

    `settings` are all values that the other one does not have, by the pattern of a path `<host>/<path>`.
    `names` are regular expressions for names and addresses, and what the other one has in their place.
    `hosts` are further hosts, each with the host whose files it has; in `settings` it has that host's name.
    """

    like: str
    settings: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, str] = field(default_factory=dict)


PORTS_OF_DATANODES = {"datanode2": (9874, 9876), "datanode3": (9884, 9886)}
VARIANTS = {
    "compose-three": Variant(
        "compose",
        settings={
            "*/hdfs-site.xml": ("dfs.replication=3",),
            "namenode/etc/hadoop/namenode/hdfs-site.xml": ("dfs.namenode.handler.count=21",),
            "namenode/etc/lakehouse/service.json": ("/mnt/datanode2", "/mnt/datanode3"),
            **{
                f"{host}/etc/hadoop/datanode/hdfs-site.xml": (
                    f"dfs.datanode.http.address=datanode1:{http}",
                    f"dfs.datanode.address=datanode1:{data}",
                )
                for host, (http, data) in PORTS_OF_DATANODES.items()
            },
            **{
                f"{host}/etc/lakehouse/service.json": (
                    f'url": "http://datanode1:{http}/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo',
                )
                for host, (http, _) in PORTS_OF_DATANODES.items()
            },
        },
        hosts={"datanode2": "datanode1", "datanode3": "datanode1"},
    ),
    "dedicated-namenode": Variant(
        "three-node",
        # The host that the NameNode left divides its memory among the others; all have executors of one size.
        settings={
            **{EXECUTORS.format(name): ("spark.executor.memory=912m",) for name in SPARK},
            "*/spark-worker.service": ("--memory 1824m",),
            "*/etc/trino/config.properties": ("query.max-memory=1520MB", "query.max-total-memory=3040MB"),
            "cpu-node1/etc/trino/config.properties": (
                "memory.heap-headroom-per-node=326MB",
                "query.max-memory-per-node=432MB",
            ),
            "cpu-node1/etc/trino/jvm.config": ("-Xmx1088m",),
            "cpu-node1/etc/flink/config.yaml": LARGER_TASKMANAGER,
            "cpu-node1/etc/flink/cluster/config.yaml": LARGER_TASKMANAGER,
            "cpu-node1/*/flink-taskmanager.service": ("-XX:MaxDirectMemorySize=198m",),
            # The NameNode has a machine for itself, and its backup's program as much.
            "*/etc/lakehouse-backup/settings.json": ("-Xmx3072m",),
            "*/hdfs-namenode.service": ("-Xmx3072m",),
            "*/hdfs-checkpoint.service": ("-Xmx3072m",),
            # One target more.
            "*/etc/lakehouse-monitoring/prometheus.yml": (
                *("{", 'targets": [', "192.168.1.184:9100", "]", 'labels": {', 'host": "cpu-node1', "}"),
            ),
            "*/etc/lakehouse-monitoring/probe-exporter.json": (
                *("{", 'host": "cpu-node1', 'probes": [', 'kind": "http', "}", "]", 'job": "node_exporter'),
                'url": "http://192.168.1.184:9100/',
            ),
            # The NameNode's host has no history of the catalog, whose metrics are in a folder.
            "name-node4/*/lakehouse-node-exporter.service": ("--collector.disable-defaults",),
            # It has no release of Trino, so its command line client is one by itself.
            "name-node4/usr/local/bin/trino": (TRINO_CLIENT,),
        },
        names={"name-node4": "cpu-node1", r"192\.168\.1\.187\b": "192.168.1.184"},
        hosts={"name-node4": "cpu-node1"},
    ),
    "local": Variant(
        "three-node",
        settings={
            "*/etc/flink/config.yaml": (
                *TASKMANAGER,
                "parallelism.default=3",
                "table.exec.iceberg.infer-source-parallelism.max=3",
            ),
            "*/etc/flink/cluster/config.yaml": TASKMANAGER,
            "*/etc/flink/java.options": SMALL_JVM,
            "*/flink-taskmanager.service": ("-Xmx448m", "-XX:MaxDirectMemorySize=212m"),
            "*/etc/hadoop/datanode/hdfs-site.xml": (
                "dfs.blockreport.intervalMsec=2000",
                "dfs.heartbeat.interval=1s",
            ),
            "*/etc/hadoop/namenode/hdfs-site.xml": (
                "dfs.namenode.reconstruction.pending.timeout-sec=2",
                "dfs.namenode.redundancy.interval.seconds=1",
                "dfs.namenode.replication.max-streams=50",
                "dfs.namenode.replication.max-streams-hard-limit=100",
                "dfs.namenode.replication.work.multiplier.per.iteration=50",
                "hadoop.proxyuser.trino.users=analyst",
            ),
            "*/hdfs-namenode.service": ("-Xmx256m", *SMALL_JVM),
            "*/hdfs-checkpoint.service": ("-Xmx256m", *SMALL_JVM),
            # Without Prometheus the kit's programs write no metrics, and no role reads PostgreSQL's.
            "*/etc/lakehouse-backup/settings.json": ("-Xmx256m", *SMALL_JVM, 'metrics": "'),
            "*/etc/lakehouse-catalog/settings.json": ('metrics": "',),
            "*/etc/lakehouse-timeline/settings.json": ('metrics": "',),
            "*/pg_ident.conf": ("lakehouse postgres hive",),
            "*/hdfs-datanode.service": ("-Xmx192m", *SMALL_JVM),
            "*/hive-metastore.service": ("-Xmx384m", *SMALL_JVM),
            "*/usr/local/bin/schematool": ("-Xmx384m",),
            "*/conf.d/lakehouse.conf": ("effective_cache_size = '512MB'", "shared_buffers = '96MB'"),
            "*/pg_hba.conf": (
                "local all postgres peer",
                *(
                    f"hostssl federation federation_reader {address}/32 scram-sha-256"
                    for address in ("127.0.0.1", "192.168.1.184", "192.168.1.185", "192.168.1.186")
                ),
            ),
            **{
                EXECUTORS.format(name): (
                    "spark.driver.maxResultSize=512m",
                    "spark.driver.memory=1024m",
                    "spark.executor.memory=736m",
                )
                for name in SPARK
            },
            "*/etc/spark/spark-env.sh": SMALL_JVM,
            "*/spark-[mh]*.service": SMALL_JVM,
            "*/spark-[ct]*.service": ("SPARK_DAEMON_MEMORY=1024m", *SMALL_JVM),
            "*/spark-worker.service": ("--memory 1472m", *SMALL_JVM),
            "*/etc/trino/jvm.config": ("-Xmx1024m", *SMALL_JVM, "-XX:TieredStopAtLevel=4"),
            "*/etc/trino/config.properties": (
                "memory.heap-headroom-per-node=307MB",
                "query.max-memory-per-node=400MB",
                "query.max-memory=1200MB",
                "query.max-total-memory=2400MB",
            ),
            "*/etc/trino/groups": ("readers:analyst",),
            "*/etc/sysusers.d/lakehouse.conf": (
                'u analyst - "Lakehouse reader" /nonexistent /usr/sbin/nologin',
            ),
            "*/trino.service": (f"X-Reads=/{FEDERATION}",),
            f"*/{FEDERATION}": (
                "# Managed by the lakehouse kit: a change made here is lost at the next run.",
                "connection-password=${ENV:TRINO_FEDERATION_PASSWORD}",
                "connection-url=jdbc:postgresql://cpu-node1:5432/federation",
                "connection-user=federation_reader",
                "connector.name=postgresql",
            ),
        },
        names={
            **{rf"172\.28\.0\.1{number}\b": f"192.168.1.18{number + 3}" for number in (1, 2, 3)},
            "/var/lib/lakehouse": "/data",
            "lakehouse[-_]local": "lakehouse",
        },
    ),
}
each_variant = pytest.mark.parametrize("name", VARIANTS)


def words(path: str, text: str) -> Iterator[str]:
    """Give the settings of a file, `<key>=<value>`, and its other lines; of a command each word."""
    if path.endswith(".xml"):
        for element in ET.fromstring(text.encode()).iter("property"):
            yield f"{element.findtext('name')}={element.findtext('value') or ''}"
        return
    for line in text.splitlines():
        if re.search(r"ExecStart=|_OPTS=", line):
            yield from re.findall(r'--[\w-]+ \w+m?(?= )|[^\s"]+', line)
        elif path.endswith(".yaml"):
            yield re.sub(r'^(\S+): "?([^"]*)"?$', r"\1=\2", line)
        else:
            yield line.strip("\\, ").removeprefix("Environment=").removeprefix('"').removesuffix('"')


def key(setting: str) -> str:
    """Return what names a setting, without its value."""
    match = re.match(r"-Xmx|--[\w-]+|[^=: ]*", setting)
    return match[0] if match else setting


def faults(variant: Variant, path: str, text: str, model: Mapping[str, str]) -> Iterator[str]:
    """Give what a file of a variant has, or lacks, that is neither the other inventory's nor declared."""
    host, _, rest = path.partition("/")
    like = variant.hosts.get(host, host)
    renamed = text.replace(host, like)
    for pattern, word in variant.names.items():
        renamed = re.sub(pattern, word, renamed)
    lines, shared = Counter(words(path, renamed)), Counter(words(path, model.get(f"{like}/{rest}", "")))
    settings = {setting for pattern in patterns(variant, path) for setting in variant.settings[pattern]}
    keys = {key(setting) for setting in settings}
    yield from (f"{path}: not declared: {setting}" for setting in lines - shared if setting not in settings)
    yield from (f"{path}: not there: {setting}" for setting in settings - lines.keys())
    yield from (f"{path}: lost: {setting}" for setting in shared - lines if key(setting) not in keys)


def patterns(variant: Variant, path: str) -> list[str]:
    """Return the patterns of a variant's settings that are those of a file."""
    return [pattern for pattern in variant.settings if fnmatch(path, pattern)]


def by_host(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the paths of each host's files."""
    hosts: dict[str, set[str]] = {}
    for path in files:
        host, _, rest = path.partition("/")
        hosts.setdefault(host, set()).add(rest)
    return hosts


def test_every_inventory_has_golden_files_or_is_declared_as_a_variant() -> None:
    assert {*rendering.GOLDEN, *VARIANTS} == rendering.INVENTORIES.keys()
    assert {variant.like for variant in VARIANTS.values()} <= {*rendering.GOLDEN}
    folders = {path.parent for path in (rendering.REPOSITORY / "inventory").glob("*/hosts.yml")}
    assert folders <= {rendering.REPOSITORY / folder for folder in rendering.INVENTORIES.values()}


@each_variant
def test_a_variant_differs_in_what_is_declared_alone(rendered: Rendered, name: str) -> None:
    variant, files = VARIANTS[name], rendered[name]
    model = rendered[variant.like]
    assert [fault for path, text in files.items() for fault in faults(variant, path, text, model)] == []
    assert {pattern for path in files for pattern in patterns(variant, path)} == variant.settings.keys()


@each_variant
def test_a_change_of_any_file_of_a_variant_is_noticed(rendered: Rendered, name: str) -> None:
    variant, model = VARIANTS[name], rendered[VARIANTS[name].like]
    addition = "<property><name>a.key</name><value>1</value></property></configuration>"
    for path, text in rendered[name].items():
        changed = text.replace("</configuration>", addition) if path.endswith(".xml") else f"{text}a.key=1\n"
        assert list(faults(variant, path, changed, model)) == [f"{path}: not declared: a.key=1"]


def test_the_second_and_third_datanode_have_the_files_of_the_first(rendered: Rendered) -> None:
    three, model = by_host(rendered["compose-three"]), by_host(rendered["compose"])
    assert three == model | dict.fromkeys(("datanode2", "datanode3"), model["datanode1"])


def test_a_dedicated_namenode_has_its_own_files_and_those_of_every_host(rendered: Rendered) -> None:
    dedicated, model = by_host(rendered["dedicated-namenode"]), by_host(rendered["three-node"])
    # Containers and machines together: no service is on all of them.
    everywhere = set.intersection(*model.values(), *by_host(rendered["compose"]).values())
    assert dedicated.pop("name-node4") == everywhere | NAMENODE | {NODE_EXPORTER}
    assert dedicated == model | {"cpu-node1": model["cpu-node1"] - NAMENODE}
    assert model["cpu-node1"] >= NAMENODE


def test_local_nodes_have_the_files_of_machines_and_a_federated_database(rendered: Rendered) -> None:
    local, model = by_host(rendered["local"]), by_host(rendered["three-node"])
    assert local == {host: (paths | {FEDERATION}) - MONITORING[host] for host, paths in model.items()}
