"""From an inventory's variables to the facts of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehouse.model import services as catalogue
from lakehouse.sizing.facts import WEIGHTS, Cluster, Host

# What a user may have set: what sizes a service of the catalogue, and what else of the model has a variable.
VARIABLES = frozenset({
    *(name for row in catalogue.load().services.values() for name in row.memory),
    "hdfs_namenode_handlers", "hdfs_datanode_block_report_seconds", "hive_metastore_pool_size",
    "postgresql_max_connections", "postgresql_effective_cache_mb",
    "postgresql_work_mem_mb", "postgresql_maintenance_work_mem_mb",
    "spark_worker_cores", "spark_executor_memory_mb", "spark_executor_cores", "spark_application_cores",
    "spark_shuffle_partitions", "spark_shuffle_initial_partitions",
    "trino_query_max_memory_per_node_mb", "trino_query_max_memory_mb",
    "flink_taskmanager_managed_mb", "flink_taskmanager_network_mb",
    "flink_taskmanager_metaspace_mb", "flink_taskmanager_slots", "flink_parallelism",
})  # fmt: skip
# What the whole cluster shares.
SETTINGS = (
    "lakehouse_profile",
    "lakehouse_memory_overcommit",
    "lakehouse_engine_weights",
    "hdfs_replication",
)
# Where neither the inventory nor a fact says it: a rendering without hosts.
MEMORY_MB, CORES = 8192, 2


@dataclass(frozen=True)
class Machine:
    """A host of an inventory: its groups, its variables (those of ``VARIABLES``) and the machine.

    ``memory_mb`` and ``cores`` are None where the machine was not looked at yet.
    """

    groups: Collection[str]
    variables: Mapping[str, Any]
    memory_mb: int | None = None
    cores: int | None = None
    disk_gb: int = 0


def cluster(machines: Mapping[str, Machine], settings: Mapping[str, Any]) -> Cluster:
    """Return the facts of the model.

    ``settings`` are the cluster's, by the names of ``SETTINGS``. A machine that was not looked at counts
    as the smallest of those that are known.
    """
    memory = min((of.memory_mb for of in machines.values() if of.memory_mb), default=MEMORY_MB)
    cores = min((of.cores for of in machines.values() if of.cores), default=CORES)
    small = settings.get("lakehouse_profile") == "core"
    hosts = tuple(
        Host(
            name,
            of.memory_mb or memory,
            of.cores or cores,
            services(of, small=small),
            of.disk_gb,
            {key: int(value) for key, value in of.variables.items() if key in VARIABLES},
        )
        for name, of in machines.items()
    )
    weights = settings.get("lakehouse_engine_weights") or {}
    datanodes = sum("datanode" in host.services for host in hosts)
    return Cluster(
        hosts,
        int(settings.get("hdfs_replication") or min(catalogue.REPLICATION, max(1, datanodes))),
        float(settings.get("lakehouse_memory_overcommit") or 1),
        {**WEIGHTS, **{name: weight for name, weight in weights.items() if weight is not None}},
    )


def services(machine: Machine, *, small: bool) -> frozenset[str]:
    """Return the services of a machine, in the small profile or the full one."""
    rows = catalogue.load()
    running = rows.running(machine.groups, machine.variables, small=small)
    # A coordinator runs the same service without executing queries.
    executes = "trino_workers" in rows.placed(small=small).intersection(machine.groups)
    return running | ({"trino_worker"} if executes else set())


def disk_gb(mounts: Sequence[Mapping[str, Any]], folders: Collection[str]) -> int:
    """Return the GB of the file systems that hold folders, by the fact ``mounts``; 0 if none is known."""
    sizes = {str(mount["mount"]): int(mount.get("size_total") or 0) for mount in mounts}
    holders = {
        max((path for path in sizes if f"{folder}/".startswith(f"{path.rstrip('/')}/")), key=len, default="")
        for folder in folders
    }
    return sum(sizes.get(holder, 0) for holder in holders) // 10**9
