"""Sizes that the inventory sets: each a size at all, and all of a host's services within its memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakehouse.inventory import Host, Inventory
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
    """Return the model's facts of these hosts alone, as far as their inventory tells, with ``services``."""
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
    found = placed.cluster(machines, {name: hosts[0].variables.get(name) for name in placed.SETTINGS})
    return found.placing(*services)


def effective(hosts: Sequence[Host], *services: str) -> Mapping[str, Mapping[str, int]]:
    """Return the sizes that hosts with ``services`` will have, by host: what is set, and what the model says.

    Nothing where what is set is no size at all: another check names that one.
    """
    said = [host.variables[name] for host in hosts for name in placed.VARIABLES & host.variables.keys()]
    if not hosts or any(size <= 0 for size in said) or any(map(factors, hosts)) or any(map(broken, hosts)):
        return {}
    return plan(facts(hosts, *services)).sizes


def factors(host: Host) -> list[Finding]:
    """Check that the factor on memory is in its range, and every engine's weight more than nothing."""
    values = host.variables
    factor = values.get(FACTOR)
    said = {f"{WEIGHTS}.{name}": weight for name, weight in (values.get(WEIGHTS) or {}).items()}
    advice = "correct it, or leave it out: it has a default (docs/sizing.md)"
    findings = [
        Finding("sizes.range", host.name, f"{name} is {value}", advice, "more than 0")
        for name, value in said.items()
        if value is not None and value <= 0
    ]
    if factor is not None and not 0 < factor <= MOST_FACTOR:
        expected = f"more than 0, at most {MOST_FACTOR}"
        findings.append(Finding("sizes.range", host.name, f"{FACTOR} is {factor}", advice, expected))
    return findings


def executors(host: Host) -> list[Finding]:
    """Check that an executor of the size that is set fits on the worker: else no application ever starts."""
    asked = [f"spark_executor_{kind}" for kind in ("memory_mb", "cores")]
    made = effective([host], "spark_worker").get(host.name)
    if "spark_workers" not in host.groups or not made or not host.variables.keys() & set(asked):
        return []
    findings = []
    for name in asked:
        worker = name.replace("executor", "worker")
        if made[name] > made[worker]:
            fact = f"{name} is {made[name]}, and a worker has {made[worker]} ({worker})"
            advice = f"lower it, or raise {worker}: no application would start"
            findings.append(Finding("sizes.executor", host.name, fact, advice, f"at most {made[worker]}"))
    return findings


def room(host: Host) -> list[Finding]:
    """Check that the services of a host fit into it at their least, beside what the inventory sets.

    Sizes that an inventory has set and that fit into the memory, if not into 85 % of it, are a warning alone.
    Nothing is said of a host whose memory is not known yet, nor where a size alone is none, or more than the
    host: another check names that one.
    """
    node = host.variables.get(NODE)
    said = placed.VARIABLES & host.variables.keys()
    sizes = [host.variables[name] for name in said if name.endswith("_mb")]
    if not node or any(not 0 < size <= node for size in sizes) or broken(host) or factors(host):
        return []
    cluster = facts([host])
    for gap in plan(cluster).gaps:
        usable = int(cluster.usable(cluster.hosts[0]))
        largest = sorted(gap.services, key=lambda name: -gap.services[name])[:NAMED]
        named = ", ".join(f"{name} ({gap.services[name]})" for name in largest)
        least = usable + gap.missing_mb
        fact = f"its services take {least} MiB at the least, {gap.missing_mb} more than there are"
        advice = f"move one of {named} to another host, lower what is set, or raise {FACTOR}"
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


def judged(cluster: Cluster, made: Plan) -> list[Finding]:
    """Find workers on which no executor fits, and a NameNode that full disks outgrow: warnings."""
    findings = []
    for host in cluster.having("spark_worker"):
        of = made.sizes[host.name]
        worker, executor = of["spark_worker_memory_mb"], of["spark_executor_memory_mb"]
        if worker < executor and "spark_executor_memory_mb" not in host.sizes:
            fact = f"its worker of Spark has {worker} MiB, and no executor of the others fits"
            advice = "give it more memory, take it out of [spark_workers], or set spark_executor_memory_mb"
            expected = f"at least {executor}"
            findings.append(Finding("sizes.mixed", host.name, fact, advice, expected, Level.WARNING))
    need = int(hdfs.needed(cluster))
    for host in cluster.having("namenode"):
        heap = made.sizes[host.name]["hdfs_namenode_heap_mb"]
        if heap < need * ENOUGH:
            blocks = f"{hdfs.blocks(cluster) / 1e6:.1f} million blocks"
            fact = f"its NameNode has a heap of {heap} MiB, and the disks hold {blocks}"
            advice = "move engines to another host, or set hdfs_namenode_heap_mb before the disks are full"
            expected = f"at least {need}"
            findings.append(Finding("sizes.namenode", host.name, fact, advice, expected, Level.WARNING))
    return findings
