"""Flink: the parts of a TaskManager's process, its slots, and the parallelism of the cluster."""

from __future__ import annotations

from lakehouse.sizing.facts import Host
from lakehouse.sizing.units import MOST_COMPRESSED, clamp

# Parts of the process that are always the same, and the least that a slot's tasks need in the heap; in MiB.
FRAMEWORK, OFF_HEAP, METASPACE, LEAST_OVERHEAD, MOST_OVERHEAD = 128, 128, 256, 128, 1024
LEAST_TASK_HEAP, HEAP_PER_SLOT, LEAST_MANAGED, LEAST_NETWORK = 64, 160, 64, 64
# A slot beside the process's own parts.
OWN, SLOT = 640, 768
MOST_PARALLELISM = 256


def slots(process: int, cores: int) -> int:
    """Tasks side by side: (process - 640) / 768, at least 1 and at most as many as there are cores.

    Flink, "Configuring TaskManager processing slots": proportional to the cores.
    """
    return int(clamp((process - OWN) // SLOT, 1, max(1, cores)))


def parallelism(slots_of_all: int) -> int:
    """Tasks of a step of a job that names no number: half of all slots, so that two jobs fit."""
    return int(clamp(slots_of_all // 2, 1, MOST_PARALLELISM))


def parts(host: Host, process: int, tasks: int, wide: int) -> dict[str, int]:
    """Divide a process (MiB) with ``tasks`` slots for jobs that are ``wide`` tasks wide.

    Of what the JVM leaves, 0.4 is managed memory, which batch jobs sort and join in, unless tasks would
    have less than 160 MiB of heap each. Network memory is 0.1, and at least what a blocking exchange (512
    buffers of 32 KiB) and one all-to-all exchange of every slot take:
    docs/deployment/memory/network_mem_tuning of Flink.
    """
    overhead = int(clamp(0.1 * process, LEAST_OVERHEAD, MOST_OVERHEAD))
    metaspace = host.sizes.get("flink_taskmanager_metaspace_mb", METASPACE)
    flink = process - overhead - metaspace
    exchange = tasks * (16 + 2 * (2 * wide + 8) / 32)
    network = host.sizes.get("flink_taskmanager_network_mb")
    if network is None:
        # More than a third would leave nothing to compute with.
        network = int(min(max(LEAST_NETWORK, 0.1 * flink, exchange), max(LEAST_NETWORK, flink / 3)))
    managed = host.sizes.get("flink_taskmanager_managed_mb")
    if managed is None:
        spare = flink - network - FRAMEWORK - OFF_HEAP - tasks * HEAP_PER_SLOT
        managed = int(max(min(LEAST_MANAGED * tasks, flink / 4), min(0.4 * flink, spare)))
        # One TaskManager per host, whose heap ends at 31 GiB: what is more sorts and joins outside of it.
        managed = max(managed, flink - network - OFF_HEAP - MOST_COMPRESSED)
    return {
        "flink_taskmanager_managed_mb": managed,
        "flink_taskmanager_network_mb": network,
        "flink_taskmanager_metaspace_mb": metaspace,
        "flink_taskmanager_overhead_mb": overhead,
        "flink_taskmanager_framework_heap_mb": FRAMEWORK,
        "flink_taskmanager_off_heap_mb": OFF_HEAP,
        "flink_taskmanager_task_heap_mb": flink - network - managed - FRAMEWORK - OFF_HEAP,
    }
