"""Flink: its groups, how a TaskManager's memory is divided, and keys that size it."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse.model.inventory import Host, Inventory
from lakehouse.sizing import plan
from lakehouse.sizing.flink import LEAST_TASK_HEAP
from lakehouse.validation import limits, sizes
from lakehouse.validation.finding import Finding
from lakehouse.validation.topology import meant
from plugins.module_utils.lakehouse.counting import counted

LEADER, WORKERS = "flink_jobmanager", "flink_taskmanagers"


def groups(inventory: Inventory) -> list[Finding]:
    """Check that there is a JobManager and a TaskManager to work for it, or no Flink at all."""
    leaders, workers = ([host.name for host in inventory.group(group)] for group in (LEADER, WORKERS))
    expected = "exactly one host, or none in both groups"
    if workers and not leaders:
        fact = f"group {LEADER} is empty, and {WORKERS} is not"
        advice = meant(inventory, LEADER) or f"put a host into [{LEADER}]"
        return [Finding("groups.flink", "all", fact, advice, expected)]
    if leaders and not workers:
        fact = f"group {WORKERS} is empty, and {LEADER} is not"
        advice = meant(inventory, WORKERS) or f"put a host into [{WORKERS}]"
        return [Finding("groups.flink", "all", fact, advice, "at least one host")]
    return []


def memory(host: Host) -> list[Finding]:
    """Check that the parts of a TaskManager fit into its process."""
    node = _number(host, "node_memory_mb")
    if not (node or _number(host, "flink_taskmanager_memory_mb")) or limits.broken(host):
        return []
    host_sizes = plan(sizes.facts([host], "flink_taskmanager")).sizes[host.name]
    process, tasks = host_sizes["flink_taskmanager_memory_mb"], host_sizes["flink_taskmanager_task_heap_mb"]
    if tasks >= LEAST_TASK_HEAP:
        return []
    parts = process - tasks
    fact = (
        f"flink_taskmanager_memory_mb is {process}, of which managed memory, network, metaspace and the "
        f"process itself take {parts}"
    )
    advice = "raise it, or lower flink_taskmanager_managed_mb or flink_taskmanager_network_mb"
    return [Finding("flink.memory", host.name, fact, advice, f"at least {parts + LEAST_TASK_HEAP}")]


def parallelism(host: Host, inventory: Inventory) -> list[Finding]:
    """Check that there are enough slots for a job of the default parallelism."""
    tasks, workers = _number(host, "flink_parallelism"), inventory.group(WORKERS)
    slots = _slots(host)
    if tasks is None or slots is None or not workers or tasks <= slots * len(workers):
        return []
    capacity = f"{counted(len(workers), 'TaskManager')} of {counted(slots, 'slot')}"
    fact = f"flink_parallelism is {tasks} with {capacity}"
    advice = "lower it, or raise flink_taskmanager_slots: a streaming job would wait for slots for ever"
    return [Finding("flink.slots", host.name, fact, advice, f"at most {slots * len(workers)}")]


def config(host: Host) -> list[Finding]:
    """Check that no key of `flink_config` sizes what the role computes."""
    keys = host.variables.get("flink_config")
    advice = "remove it and set flink_taskmanager_memory_mb or flink_jobmanager_heap_mb"
    return [
        Finding("flink.config", host.name, f"flink_config has {key!r}", advice, "memory in its own variables")
        for key in (map(str, keys) if isinstance(keys, Mapping) else ())
        if ".memory." in key
    ]


def _number(host: Host, name: str) -> int | None:
    value = host.variables.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _slots(host: Host) -> int | None:
    """Slots of a TaskManager; where its memory is not known yet, the most that it may have."""
    cores = _number(host, "node_cores")
    if not (_number(host, "node_memory_mb") and cores):
        return _number(host, "flink_taskmanager_slots") or cores
    return plan(sizes.facts([host], "flink_taskmanager")).sizes[host.name]["flink_taskmanager_slots"]
