"""Spark and Trino of the same release with the settings that they ship, beside those of the kit.

Stock means: what each needs to find the cluster, and nothing that says how much or how. Spark is an
application on the same master without a key of the kit for executors, memory, shuffles or plans. Trino is a
coordinator and workers of their own on the same hosts, with the `jvm.config` of Trino's documentation for the
heap that the kit gives, and a `config.properties` without a limit.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lakehouse.errors import LakehouseError
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines import EngineError
from suites.testbed.engines.trino import Trino
from suites.testbed.nodes import Nodes
from suites.testbed.waiting import wait_for

# What leads an application to the cluster: its master, its own address, the catalogs.
REACH = (
    "spark.master",
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.hadoop.hive.metastore.uris",
    "spark.sql.catalogImplementation",
    "spark.sql.extensions",
    "spark.sql.warehouse.dir",
)
CATALOGS = "spark.sql.catalog."
JAVA = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
# Without it an application on this master has what the kit's master gives to one that says nothing.
ALL_CORES = ("spark.cores.max", "10000")

# https://trino.io/docs/476/installation/deployment.html: the example, but for the size of the heap.
DOCUMENTED_JVM = (
    "-server",
    "-XX:InitialRAMPercentage=80",
    "-XX:MaxRAMPercentage=80",
    "-XX:G1HeapRegionSize=32M",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-OmitStackTraceInFastThrow",
    "-XX:ReservedCodeCacheSize=512M",
    "-XX:PerMethodRecompilationCutoff=10000",
    "-XX:PerBytecodeRecompilationCutoff=10000",
    "-Djdk.attach.allowAttachSelf=true",
    "-Djdk.nio.maxCachedBufferSize=2000000",
    "-Dfile.encoding=UTF-8",
    "-XX:+EnableDynamicAgentLoading",
)
# A heap by percentage would be of the whole host, which others share: the kit's size replaces both.
PERCENTAGES = ("-XX:InitialRAMPercentage=80", "-XX:MaxRAMPercentage=80")
# Of the kit's options those without which neither runs here, or tells the same time.
NEEDED = ("--", "-DHADOOP_USER_NAME", "-Duser.timezone")
PORT_OFFSET = 1
CATALOGS_READ = ("iceberg", "tpch")
UNIT = "bench-trino-stock"
FOLDER = "/run/bench-stock"
DATA = f"{FOLDER}/data"
START_SECONDS = 300
ACTIVE = "SELECT count(*) FROM system.runtime.nodes WHERE state = 'active'"


def spark_properties(kit: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a stock application, by those of the kit's file."""
    reach = {key: value for key, value in kit.items() if key in REACH or key.startswith(CATALOGS)}
    options = kit["spark.driver.extraJavaOptions"].split()
    java = " ".join(option for option in options if option.startswith(NEEDED))
    return reach | dict.fromkeys(JAVA, java) | dict([ALL_CORES])


@dataclass(frozen=True)
class Node:
    """A host of the kit's Trino: its config.properties, and heap and options of the stock JVM beside it."""

    host: str
    properties: Mapping[str, str]
    heap: str
    options: Sequence[str]


def trino_files(node: Node, port: int) -> dict[str, str]:
    """Return the files of a stock node's etc folder."""
    kit = node.properties
    jvm = [f"-Xmx{node.heap}", *(option for option in DOCUMENTED_JVM if option not in PERCENTAGES)]
    config = {
        "coordinator": kit["coordinator"],
        "http-server.http.port": str(port),
        "discovery.uri": f"{kit['discovery.uri'].rpartition(':')[0]}:{port}",
        "catalog.config-dir": f"{FOLDER}/catalog",
        "plugin.dir": kit["plugin.dir"],
        "internal-communication.shared-secret": kit["internal-communication.shared-secret"],
    }
    identity = {"node.environment": "bench", "node.id": f"stock-{node.host}", "node.data-dir": DATA}
    return {
        "jvm.config": "".join(f"{line}\n" for line in [*jvm, *node.options]),
        "config.properties": lines(config),
        "node.properties": lines(identity),
    }


def lines(properties: Mapping[str, str]) -> str:
    """Print properties."""
    return "".join(f"{key}={value}\n" for key, value in sorted(properties.items()))


def parsed(text: str) -> dict[str, str]:
    """Read properties as the kit writes them."""
    entries = (line for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in entries)


def put(nodes: Nodes, host: str, path: str, text: str) -> None:
    """Write a file on a host, readable for every user."""
    encoded = base64.b64encode(text.encode()).decode()
    quoted = shlex.quote(path)
    nodes.run(
        host, "sh", "-c", f"install -D -m 0644 /dev/null {quoted} && echo {encoded} | base64 -d > {quoted}"
    )


@contextmanager
def trino(nodes: Nodes, endpoints: Endpoints) -> Iterator[Trino]:
    """Run a stock Trino on the hosts of the kit's, beside it, for the length of the block."""
    if endpoints.trino is None:
        raise LakehouseError("there is no Trino in this cluster", "make lakehouse")
    hosts = [host.name for host in endpoints.hosts.values() if "trino" in " ".join(host.groups)]
    address, port = endpoints.trino.http.rpartition(":")[0], int(endpoints.trino.http.rpartition(":")[2])
    port += PORT_OFFSET
    unit = endpoints.units["trino"]
    try:
        for host in hosts:
            _start(nodes, host, unit, port)
        stock = Trino.connect(f"{address}:{port}", endpoints.users["trino"])
        wait_for(
            "the stock Trino with all its nodes",
            lambda: stock.sql(ACTIVE) == [(len(hosts),)],
            seconds=START_SECONDS,
            ignoring=(EngineError,),
        )
        yield stock
    finally:
        for host in hosts:
            nodes.run(host, "sh", "-c", f"systemctl stop {UNIT}; rm -rf {FOLDER}", seconds=120)


def _start(nodes: Nodes, host: str, unit: str, port: int) -> None:
    """Start a node of the stock Trino as the user, and with the secrets, of the kit's."""
    output = nodes.run(
        host, "systemctl", "show", unit, "--property", "ExecStart,User,Group,EnvironmentFiles,Environment"
    )
    unit_properties = parsed(output)
    argv = unit_properties["ExecStart"].partition("argv[]=")[2].partition(" ;")[0].split()
    etc = argv[argv.index("--etc-dir") + 1]
    secrets = unit_properties["EnvironmentFiles"].partition(" ")[0]
    properties = parsed(nodes.run(host, "cat", f"{etc}/config.properties"))
    kit_jvm = [
        line for line in nodes.run(host, "cat", f"{etc}/jvm.config").splitlines() if line.startswith("-")
    ]
    heap = next(option for option in kit_jvm if option.startswith("-Xmx")).removeprefix("-Xmx")
    node = Node(host, properties, heap, [option for option in kit_jvm if option.startswith(NEEDED)])
    for name, text in trino_files(node, port).items():
        put(nodes, host, f"{FOLDER}/etc/{name}", text)
    catalogs = " ".join(
        shlex.quote(f"{properties['catalog.config-dir']}/{name}.properties") for name in CATALOGS_READ
    )
    owner = f"{unit_properties['User']}:{unit_properties['Group']}"
    nodes.run(
        host, "sh", "-c",
        f"mkdir -p {FOLDER}/catalog {DATA} && cp {catalogs} {FOLDER}/catalog/ && chown {owner} {DATA}",
    )  # fmt: skip
    environment = [f"--setenv={pair}" for pair in unit_properties["Environment"].split()]
    identity = [
        f"--uid={unit_properties['User']}",
        f"--gid={unit_properties['Group']}",
        f"--property=EnvironmentFile={secrets}",
    ]
    nodes.run(
        host, "systemd-run", f"--unit={UNIT}", "--collect", *identity, *environment,
        argv[0], "run", "--etc-dir", f"{FOLDER}/etc", "--data-dir", DATA,
        "--jvm-dir", argv[argv.index("--jvm-dir") + 1],
    )  # fmt: skip
