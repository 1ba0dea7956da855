"""The groups of the inventory, and their numbers of hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakehouse.model import services
from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation.finding import Finding, Level
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.nearest import nearest

# The least number of hosts of which one can fail and more than half are left.
LEAST_QUORUM = 3
# How much a group's name resembles one of the catalogue's that it is a misspelling, not a group of its own.
ALIKE = 0.85
_EXPECTED = {
    services.ONE: "exactly one host",
    services.AT_MOST_ONE: "at most one host",
    services.SOME: "at least one host",
}
# Of counts by which a group has no host or several: which numbers are allowed, and what to say of another.
_SEVERAL: Mapping[str, tuple[Callable[[int], bool], str, str, str]] = {
    services.PAIR: (
        lambda hosts: hosts in {0, 2},
        "host",
        "put a second host into it, or take hosts out",
        "none, or two hosts",
    ),
    services.QUORUM: (
        lambda hosts: hosts == 0 or (hosts >= LEAST_QUORUM and hosts % 2 == 1),
        "voter",
        "add a host to it, or take one out",
        f"none, or an odd number of at least {LEAST_QUORUM}",
    ),
}


def group_sizes(inventory: Inventory) -> list[Finding]:
    """Check that every group has hosts, singleton groups one, quorums an odd number."""
    findings = []
    catalogue = services.load()
    for group in catalogue.sized(*_EXPECTED):
        members = [host.name for host in inventory.group(group)]
        count = catalogue.groups[group].hosts
        expected = _EXPECTED[count]
        if not members and count != services.AT_MOST_ONE:
            advice = meant(inventory, group) or f"put a host into [{group}]"
            findings.append(Finding("groups.size", "all", f"group {group} is empty", advice, expected))
        elif len(members) > 1 and count != services.SOME:
            fact = f"group {group} has {counted(len(members), 'host')}"
            findings.append(
                Finding("groups.size", ",".join(members), fact, "leave one of them in it", expected)
            )
    return findings + [
        Finding(
            "groups.size",
            ",".join(members),
            f"group {group} has {counted(len(members), noun)}",
            advice,
            expected,
        )
        for count, (allowed, noun, advice, expected) in _SEVERAL.items()
        for group in catalogue.sized(count)
        if not allowed(len(members := [host.name for host in inventory.group(group)]))
    ]


def meant(inventory: Inventory, group: str) -> str:
    """Return ``did you mean x?`` where an empty group of the catalogue has a misspelt one, else nothing."""
    close = nearest(group, _others(inventory))
    return f"did you mean {close}?" if close else ""


def unused(inventory: Inventory, earlier: Sequence[Finding] = ()) -> list[Finding]:
    """Find misspelt groups, and hosts without a service: warnings, because groups of your own are allowed.

    A misspelt group that one of the ``earlier`` findings suggests is not reported again.
    """
    groups = services.load().groups
    misspelt = {
        group: close for group in sorted(_others(inventory)) if (close := nearest(group, groups, ALIKE))
    }
    explained = {host.name for group in misspelt for host in inventory.group(group)}
    advice = "put it into a group of services.yml, or take it out of the inventory"
    return [
        Finding(
            "groups.unknown",
            "all",
            f"no service runs in the group {group}",
            f"did you mean {close}?",
            "a group of services.yml",
            Level.WARNING,
        )
        for group, close in misspelt.items()
        if not any(finding.action == meant(inventory, close) for finding in earlier)
    ] + [
        Finding("groups.host", host.name, "no service runs on this host", advice, level=Level.WARNING)
        for host in inventory.hosts
        if not host.groups & groups.keys() and host.name not in explained
    ]


def _others(inventory: Inventory) -> set[str]:
    """Return the groups of the inventory that are none of the catalogue."""
    groups = {group for host in inventory.hosts for group in host.groups}
    return groups - {*services.load().groups, "all", "ungrouped"}


def replication(host: Host, inventory: Inventory) -> list[Finding]:
    """Check that there are as many DataNodes as copies of a block."""
    copies = host.variables.get("hdfs_replication")
    datanodes = len(inventory.group("datanodes"))
    if copies is None or not datanodes or 1 <= int(copies) <= datanodes:
        return []
    return [
        Finding(
            "hdfs.replication",
            host.name,
            f"hdfs_replication is {copies} with {counted(datanodes, 'DataNode')}",
            "lower hdfs_replication, or add hosts to the group datanodes",
            f"1 to {datanodes}",
        )
    ]
