"""Machines and layouts that docs/sizing.md and the tests show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lakehouse.sizing.facts import WEIGHTS, Cluster, Host


class Machine(NamedTuple):
    """Memory, virtual processors, and raw disk for HDFS in GB."""

    memory_gib: int
    cores: int
    disk_gb: int


MACHINES = (
    Machine(6, 2, 100),
    Machine(16, 4, 1000),
    Machine(64, 16, 8000),
    Machine(256, 64, 48000),
    Machine(1024, 128, 96000),
)
NODES = (3, 10, 50)
# What the processes of an engine are called.
OF_ENGINE = {
    "spark": {"spark_worker"},
    "trino": {"trino", "trino_worker"},
    "flink": {"flink_taskmanager"},
}
WORKERS = frozenset({"datanode"}.union(*OF_ENGINE.values()))
METADATA = frozenset({"namenode", "postgresql", "metastore", "spark_master", "spark_history"})
FLINK_MASTERS = frozenset({"flink_jobmanager", "flink_sql_gateway", "flink_history"})


def host(machine: Machine, number: int, services: frozenset[str] | set[str]) -> Host:
    """Return the host of this number with these services."""
    name = f"n{number}"
    return Host(name, machine.memory_gib * 1024, machine.cores, frozenset(services), machine.disk_gb)


def colocated(machine: Machine, nodes: int, overcommit: float = 1.0) -> Cluster:
    """Every engine on every node; masters on the first, Connect on the second, Flink's on the third."""
    masters = (METADATA, frozenset({"spark_connect"}), FLINK_MASTERS)
    extra_services = (*masters, *[frozenset[str]()] * nodes)
    hosts = (host(machine, number, WORKERS | extra_services[number - 1]) for number in range(1, nodes + 1))
    return Cluster(tuple(hosts), overcommit=overcommit)


def separated(machine: Machine, nodes: int) -> Cluster:
    """All masters on the first node; each of the others is a DataNode with one engine, by the weights."""
    masters = host(machine, 1, METADATA | FLINK_MASTERS)
    workers = zip(range(2, nodes + 1), _engines(), strict=False)
    return Cluster(
        (masters, *(host(machine, number, {"datanode", *OF_ENGINE[name]}) for number, name in workers))
    )


def _engines() -> Iterator[str]:
    """Give an engine for each further node, always the one with the fewest nodes for its weight."""
    node_counts = dict.fromkeys(WEIGHTS, 0)
    while True:
        name = min(node_counts, key=lambda engine: ((node_counts[engine] + 1) / WEIGHTS[engine], engine))
        node_counts[name] += 1
        yield name
