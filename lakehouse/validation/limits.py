"""Sizes with which a component does not start, or that its host does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lakehouse.model import services
from lakehouse.model.inventory import Host
from lakehouse.validation.finding import Finding, Level
from lakehouse.validation.memory import NODE

CORES = "node_cores"


class Least(NamedTuple):
    """The least size of a process in MiB, and why it is not less."""

    mb: int
    reason: str


# spark-core: org.apache.spark.memory.UnifiedMemoryManager, 1.5 x 300 MiB that it reserves.
_OF_SPARK = Least(450, "Spark refuses to start with less")
# What inventory/compose has, which `make test` runs. A JVM of less dies at its start, or soon after.
_NAMENODE = Least(128, "the NameNode does not start with less")
_DATANODE = Least(112, "the DataNode does not start with less")
_METASTORE = Least(176, "the metastore does not start with less")
_SPARK_DAEMON = Least(96, "the daemons of Spark do not start with less")
_FLINK_MASTER = Least(256, "Flink's classes do not fit into less")
LEAST: Mapping[str, Least] = {
    "hdfs_namenode_heap_mb": _NAMENODE,
    "hdfs_datanode_heap_mb": _DATANODE,
    "hive_metastore_heap_mb": _METASTORE,
    "spark_daemon_memory_mb": _SPARK_DAEMON,
    "spark_master_heap_mb": _SPARK_DAEMON,
    "spark_history_heap_mb": _SPARK_DAEMON,
    "spark_worker_memory_mb": _OF_SPARK,
    "spark_executor_memory_mb": _OF_SPARK,
    "spark_driver_memory_mb": _OF_SPARK,
    "backup_spark_memory_mb": _OF_SPARK,
    # lakehouse.sizing.trino: 460 to 660 MiB of plugins and code were measured beside it.
    "trino_heap_mb": Least(1024, "Trino's own classes and a query do not fit into less"),
    "flink_jobmanager_heap_mb": _FLINK_MASTER,
    "flink_sql_gateway_heap_mb": _FLINK_MASTER,
    # What services.yml gives it on the smallest host.
    "flink_history_heap_mb": Least(96, "the history server does not start with less"),
}
# What is no memory of a service in services.yml, and the service that takes it.
_TAKEN_BY = {
    "spark_executor_memory_mb": "spark_worker",
    "trino_query_max_memory_per_node_mb": "trino",
    "flink_taskmanager_managed_mb": "flink_taskmanager",
    "flink_taskmanager_network_mb": "flink_taskmanager",
    "flink_taskmanager_metaspace_mb": "flink_taskmanager",
    "postgresql_work_mem_mb": "postgresql",
    "postgresql_maintenance_work_mem_mb": "postgresql",
}


def least(host: Host) -> list[Finding]:
    """Find sizes with which a component would not start; zero and less are another check's."""
    return [
        Finding(
            "sizes.least",
            host.name,
            f"{name} is {size}",
            f"raise it, or leave it out: {LEAST[name].reason}",
            f"at least {LEAST[name].mb}",
        )
        for name, size in _sizes(host)
        if name in LEAST and 0 < size < LEAST[name].mb
    ]


def more_than_host(host: Host) -> list[Finding]:
    """Find sizes of services of this host that are larger than its memory, or than its cores: a warning.

    There is no finding without the host's memory in the inventory: preflight reads it from the machine.
    """
    memory, cores = (_number(host, name) for name in (NODE, CORES))
    size_variables = variables(host)
    findings = [
        Finding(
            "sizes.host",
            host.name,
            f"{name} is {size}, and {NODE} is {memory}",
            "lower it, or leave it out: then it follows from the memory",
            f"at most {memory}",
        )
        for name, size in _sizes(host)
        if name in size_variables and memory and size > memory
    ]
    worker_cores = _number(host, "spark_worker_cores")
    if "spark_worker_memory_mb" in size_variables and worker_cores and cores and worker_cores > cores:
        fact = f"spark_worker_cores is {worker_cores}, and {CORES} is {cores}"
        advice = "lower it, or leave it out: tasks would wait for each other"
        findings.append(Finding("sizes.host", host.name, fact, advice, f"at most {cores}", Level.WARNING))
    return findings


def variables(host: Host) -> frozenset[str]:
    """Return the variables that size the memory of services on this host, switched on or not."""
    rows = services.load().services
    host_services = {name for name, row in rows.items() if host.groups.intersection(row.groups)}
    return frozenset(
        {name for service in host_services for name in rows[service].memory}
        | {name for name, service in _TAKEN_BY.items() if service in host_services}
    )


def broken(host: Host) -> bool:
    """Whether a size of this host is wrong by itself: then no check judges it together with others."""
    return bool(
        least(host)
        or [finding for finding in more_than_host(host) if finding.level is Level.FAULT]
        or any(size <= 0 for _, size in _sizes(host))
    )


def _sizes(host: Host) -> Iterator[tuple[str, int]]:
    """Yield the sizes in MiB that the inventory sets."""
    for name in host.variables:
        if name.endswith("_mb") and (size := _number(host, name)) is not None:
            yield name, size


def _number(host: Host, name: str) -> int | None:
    value = host.variables.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
