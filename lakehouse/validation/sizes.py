"""Sizes of the inventory: their ranges, and all services of a host within its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.model.inventory import Host, Inventory
from lakehouse.sizing import Cluster, Plan, hdfs, placed, plan
from lakehouse.validation.finding import Finding, Level
from lakehouse.validation.limits import broken
from lakehouse.validation.memory import NODE

# More of it is a host that kills what it has promised memory to: the kit was run with 1.5.
MOST_FACTOR = 2
FACTOR, WEIGHTS = "lakehouse_memory_overcommit", "lakehouse_engine_weights"
# A heap is rounded down to a step; what is less than this of the need is short.
ENOUGH = 0.95
# So many of the largest are named as what could move.
NAMED = 3


def facts(hosts: Sequence[Host], *services: str) -> Cluster:
    """Return the model's facts of these hosts alone, from their inventory, with ``services``."""
    machines = {
        host.name: placed.Machine(
            host.groups,
            host.variables,
            host.variables.get(NODE),
            host.variables.get("node_cores"),
            host.variables.get("node_disk_gb") or 0,
        )
        for host in hosts
    }
    settings = {name: hosts[0].variables.get(name) for name in placed.SETTINGS}
    return placed.cluster(machines, settings).placing(*services)


def effective(hosts: Sequence[Host], *services: str) -> Mapping[str, Mapping[str, int]]:
    """Return the sizes of hosts with ``services``, by host: those of the inventory, else those of the model.

    Empty if a set size is invalid, which is a finding of another check.
    """
    set_sizes = [host.variables[name] for host in hosts for name in placed.VARIABLES & host.variables.keys()]
    if (
        not hosts
        or any(size <= 0 for size in set_sizes)
        or any(map(factors, hosts))
        or any(map(broken, hosts))
    ):
        return {}
    return plan(facts(hosts, *services)).sizes


def factors(host: Host) -> list[Finding]:
    """Check that the memory factor is in its range, and every engine's weight above 0."""
    values = host.variables
    factor = values.get(FACTOR)
    weights = {f"{WEIGHTS}.{name}": weight for name, weight in (values.get(WEIGHTS) or {}).items()}
    advice = "correct it, or leave it out: it has a default (docs/sizing.md)"
    findings = [
        Finding("sizes.range", host.name, f"{name} is {value}", advice, "more than 0")
        for name, value in weights.items()
        if value is not None and value <= 0
    ]
    if factor is not None and not 0 < factor <= MOST_FACTOR:
        expected = f"more than 0, at most {MOST_FACTOR}"
        findings.append(Finding("sizes.range", host.name, f"{FACTOR} is {factor}", advice, expected))
    return findings


def executors(host: Host) -> list[Finding]:
    """Check that an executor of the set size fits on the worker: otherwise no application can start."""
    executor_variables = [f"spark_executor_{kind}" for kind in ("memory_mb", "cores")]
    host_sizes = effective([host], "spark_worker").get(host.name)
    if (
        "spark_workers" not in host.groups
        or not host_sizes
        or not host.variables.keys() & set(executor_variables)
    ):
        return []
    findings = []
    for name in executor_variables:
        worker = name.replace("executor", "worker")
        if host_sizes[name] > host_sizes[worker]:
            fact = f"{name} is {host_sizes[name]}, and a worker has {host_sizes[worker]} ({worker})"
            advice = f"lower it, or raise {worker}: no application would start"
            findings.append(
                Finding("sizes.executor", host.name, fact, advice, f"at most {host_sizes[worker]}")
            )
    return findings


def room(host: Host) -> list[Finding]:
    """Check that the services of a host fit into it with their minimum, or with the sizes of the inventory.

    Set sizes that fit into the memory, but not into 85 % of it, are only a warning. There is no finding for a
    host of unknown memory, nor for a size that is invalid or larger than the host, which other checks find.
    """
    node = host.variables.get(NODE)
    set_variables = placed.VARIABLES & host.variables.keys()
    sizes = [host.variables[name] for name in set_variables if name.endswith("_mb")]
    if not node or any(not 0 < size <= node for size in sizes) or broken(host) or factors(host):
        return []
    cluster = facts([host])
    for gap in plan(cluster).gaps:
        usable = int(cluster.usable(cluster.hosts[0]))
        largest = sorted(gap.services, key=lambda name: -gap.services[name])[:NAMED]
        service_list = ", ".join(f"{name} ({gap.services[name]})" for name in largest)
        least = usable + gap.missing_mb
        fact = f"its services take {least} MiB at the least, {gap.missing_mb} more than there are"
        advice = f"move one of {service_list} to another host, lower what is set, or raise {FACTOR}"
        level = Level.WARNING if sizes and least <= node * cluster.overcommit else Level.FAULT
        expected = f"at most {usable}, 85 % of {NODE} x {FACTOR}"
        return [Finding("sizes.room", host.name, fact, advice, expected, level)]
    return []


def uneven(inventory: Inventory) -> list[Finding]:
    """Judge the sizes that follow from all hosts together, where the inventory tells the memory of each."""
    hosts = inventory.hosts
    is_known = all(host.variables.get(NODE) for host in hosts)
    if not is_known or not effective(hosts) or any(finding for host in hosts for finding in room(host)):
        return []
    cluster = facts(hosts)
    return judged(cluster, plan(cluster))


def judged(cluster: Cluster, size_plan: Plan) -> list[Finding]:
    """Find workers on which no executor fits, and a NameNode that full disks outgrow: warnings."""
    findings = []
    for host in cluster.having("spark_worker"):
        worker_sizes = size_plan.sizes[host.name]
        worker, executor = worker_sizes["spark_worker_memory_mb"], worker_sizes["spark_executor_memory_mb"]
        if worker < executor and "spark_executor_memory_mb" not in host.sizes:
            fact = f"its worker of Spark has {worker} MiB, and no executor of the others fits"
            advice = "give it more memory, take it out of [spark_workers], or set spark_executor_memory_mb"
            expected = f"at least {executor}"
            findings.append(Finding("sizes.mixed", host.name, fact, advice, expected, Level.WARNING))
    need = int(hdfs.needed(cluster))
    for host in cluster.having("namenode"):
        heap = size_plan.sizes[host.name]["hdfs_namenode_heap_mb"]
        if heap < need * ENOUGH:
            blocks = f"{hdfs.blocks(cluster) / 1e6:.1f} million blocks"
            fact = f"its NameNode has a heap of {heap} MiB, and the disks hold {blocks}"
            advice = "move engines to another host, or set hdfs_namenode_heap_mb before the disks are full"
            expected = f"at least {need}"
            findings.append(Finding("sizes.namenode", host.name, fact, advice, expected, Level.WARNING))
    return findings
