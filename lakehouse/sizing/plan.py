"""The model: from the facts of a cluster to the size of every service on every host."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakehouse.sizing import engines, fixed, flink, hdfs, postgresql, spark, trino
from lakehouse.sizing.facts import Cluster, Host
from lakehouse.sizing.units import down

PER_NODE = "trino_query_max_memory_per_node_mb"
# Of the placement, and so of each host, without a step of rounding.
Sizes = dict[str, int]


@dataclass(frozen=True)
class Gap:
    """A host whose services do not fit even at their least: how many MiB are missing, and what could move."""

    host: str
    missing_mb: int
    services: Mapping[str, int]


@dataclass(frozen=True)
class Plan:
    """Sizes (MiB, counts) by host and variable, processes (MiB) by host, and the hosts that are too small."""

    sizes: Mapping[str, Sizes]
    processes: Mapping[str, Mapping[str, int]]
    gaps: tuple[Gap, ...]


def plan(cluster: Cluster) -> Plan:
    """Size every service of every host; the order of hosts and of services does not matter.

    Each host's dict holds a value for every variable, whether its service is placed there or not: files with
    the size of another host (a client's of Flink) get it from the hosts that run the service.
    """
    heaps = {host.name: fixed.heaps(host, cluster, engines.least(host)) for host in cluster.hosts}
    fixed_memory = {name: _fixed_processes(of) for name, of in heaps.items()}
    shares = {
        host.name: engines.shares(host, cluster, sum(fixed_memory[host.name].values()))
        for host in cluster.hosts
    }
    workers = _spark(cluster, shares)
    trinos = {
        host.name: host.sizes.get("trino_heap_mb") or trino.heap(shares[host.name]["trino"])
        for host in cluster.having("trino")
    }
    flinks = _flink(cluster, shares)
    shared = workers.shared | _of_trino(cluster, trinos) | _of_hdfs(cluster)
    sizes = {}
    processes = {}
    for host in cluster.hosts:
        name = host.name
        host_sizes = _of_fixed(host, cluster, heaps[name]) | workers.of(name) | flinks.of(name)
        heap = trinos.get(name) or min(trinos.values(), default=trino.LEAST_HEAP)
        limits = trino.limits(heap)
        # For a coordinator that is larger than its workers: no node's limit is above the cluster's.
        limits[PER_NODE] = min(limits[PER_NODE], shared["trino_query_max_memory_mb"])
        sizes[name] = shared | host_sizes | {"trino_heap_mb": heap} | limits
        processes[name] = dict(fixed_memory[name])
        if name in workers.hosts:
            processes[name]["spark_executors"] = math.ceil(
                host_sizes["spark_worker_memory_mb"] * spark.BESIDE
            )
        if name in trinos:
            processes[name]["trino"] = trino.process(heap)
        if name in flinks.hosts:
            processes[name]["flink_taskmanager"] = host_sizes["flink_taskmanager_memory_mb"]
    return Plan(_with_user(cluster, sizes), processes, _gaps(cluster, processes))


@dataclass(frozen=True)
class _Part:
    """Sizes of an engine: by host, for the others, and those that all hosts share."""

    hosts: Mapping[str, Sizes]
    elsewhere: Sizes
    shared: Sizes

    def of(self, name: str) -> Sizes:
        """Return a host's sizes, or those of a host that the engine is not placed on."""
        return self.hosts.get(name, self.elsewhere)


def _fixed_processes(heaps: Mapping[str, int]) -> dict[str, int]:
    return {name: fixed.FIXED[name].process(heap) for name, heap in heaps.items()}


def _of_fixed(host: Host, cluster: Cluster, heaps: Mapping[str, int]) -> Sizes:
    """Return the heaps of a host's services, and those that other services would have there."""
    full_heaps = {
        name: heaps.get(name) or row.set_by_user(host) or row.wanted(host, cluster)
        for name, row in fixed.FIXED.items()
    }
    sizes = {row.variables[0]: full_heaps[name] for name, row in fixed.FIXED.items()}
    # Drivers have the same size on every host, as have the servers, which are long-running drivers.
    servers = [heaps[name] for name in ("spark_connect", "spark_thrift") if name in heaps]
    sizes["spark_driver_memory_mb"] = min(servers, default=full_heaps["spark_connect"])
    sizes["spark_max_result_mb"] = sizes["spark_driver_memory_mb"] // 2
    sizes["node_daemon_processors"] = fixed.processors(host.cores)
    pools = [_pool_size(member) for member in cluster.having("metastore")]
    allowed = host.sizes.get("postgresql_max_connections") or postgresql.connections(sum(pools))
    sizes |= {"hive_metastore_pool_size": _pool_size(host), "postgresql_max_connections": allowed}
    return sizes | postgresql.settings(host, full_heaps["postgresql"], allowed)


def _pool_size(host: Host) -> int:
    return host.sizes.get("hive_metastore_pool_size") or postgresql.pool_size(host.cores)


def _of_hdfs(cluster: Cluster) -> Sizes:
    return {
        "hdfs_namenode_handlers": hdfs.handlers(len(cluster.having("datanode"))),
        "hdfs_datanode_block_report_seconds": hdfs.block_report_seconds(cluster),
    }


def _of_trino(cluster: Cluster, heaps: Mapping[str, int]) -> Sizes:
    workers = cluster.having("trino_worker") or cluster.having("trino")
    limits = [host.sizes.get(PER_NODE) or trino.limits(heaps[host.name])[PER_NODE] for host in workers]
    return {"trino_query_max_memory_mb": trino.query_max_memory(limits)}


def _spark(cluster: Cluster, shares: Mapping[str, Mapping[str, float]]) -> _Part:
    hosts = cluster.having("spark_worker")
    memory = {
        host.name: host.sizes.get("spark_worker_memory_mb") or shares[host.name]["spark"] / spark.BESIDE
        for host in hosts
    }
    executor_cores, heap = (
        spark.common([spark.of_worker(host, memory[host.name]) for host in hosts]) if hosts else (1, 512)
    )
    counts = {host.name: spark.count(host, memory[host.name], executor_cores, heap) for host in hosts}
    cap = _least(hosts, "spark_application_cores") or spark.application_cores(counts.values(), executor_cores)
    shared = {
        "spark_executor_cores": executor_cores,
        "spark_executor_memory_mb": heap,
        "spark_application_cores": cap,
        **spark.of_application(cap, sum(counts.values()) * executor_cores, executor_cores),
    }
    worker_sizes = {
        host.name: {
            "spark_worker_memory_mb": host.sizes.get("spark_worker_memory_mb")
            or counts[host.name] * heap
            # No executor fits: the worker has its share, unused.
            or down(memory[host.name]),
            "spark_worker_cores": host.sizes.get("spark_worker_cores")
            or max(1, counts[host.name] * executor_cores),
        }
        for host in hosts
    }
    return _Part(worker_sizes, {"spark_worker_memory_mb": heap, "spark_worker_cores": executor_cores}, shared)


def _flink(cluster: Cluster, shares: Mapping[str, Mapping[str, float]]) -> _Part:
    hosts = cluster.having("flink_taskmanager")
    memory = {host.name: _flink_process(host, shares[host.name]["flink"]) for host in hosts}
    tasks = {
        host.name: host.sizes.get("flink_taskmanager_slots") or flink.slots(memory[host.name], host.cores)
        for host in hosts
    }
    wide = _least(hosts, "flink_parallelism") or flink.parallelism(sum(tasks.values()))
    of = {host.name: _taskmanager(host, memory[host.name], tasks[host.name], wide) for host in hosts}
    # Of equal memory, the same one in whatever order hosts stand.
    size = "flink_taskmanager_memory_mb"
    smallest = min(of.values(), key=lambda sizes: (sizes[size], sorted(sizes.items())), default=None)
    if smallest is None:
        smallest = _taskmanager(Host("", 0, 1, frozenset()), engines.ENGINES["flink"].least, 1, wide)
    return _Part(of, smallest, {})


def _flink_process(host: Host, share: float) -> int:
    return host.sizes.get("flink_taskmanager_memory_mb") or down(share)


def _taskmanager(host: Host, memory: int, tasks: int, wide: int) -> Sizes:
    return {
        "flink_taskmanager_memory_mb": memory,
        "flink_taskmanager_slots": tasks,
        "flink_parallelism": wide,
        **flink.parts(host, memory, tasks, wide),
    }


def _least(hosts: Iterable[Host], variable: str) -> int | None:
    return min((host.sizes[variable] for host in hosts if variable in host.sizes), default=None)


def _with_user(cluster: Cluster, sizes: Mapping[str, Sizes]) -> dict[str, Sizes]:
    """Give the user the last word on every size."""
    return {host.name: sizes[host.name] | dict(host.sizes) for host in cluster.hosts}


def _gaps(cluster: Cluster, processes: Mapping[str, Mapping[str, int]]) -> tuple[Gap, ...]:
    return tuple(
        Gap(host.name, math.ceil(missing), processes[host.name])
        for host in sorted(cluster.hosts, key=lambda host: host.name)
        if (missing := sum(processes[host.name].values()) - cluster.usable(host)) > 0
    )
