"""Which machines play which part, and whether there are enough of them."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse import services
from lakehouse.inventory import Host, Inventory
from lakehouse.validation.finding import Finding
from lakehouse.validation.variables import suggestion
from plugins.module_utils.lakehouse.counting import counted

# The least number of hosts of which one can fail and more than half are left.
LEAST_QUORUM = 3
_EXPECTED = {
    services.ONE: "exactly one host",
    services.AT_MOST_ONE: "at most one host",
    services.SOME: "at least one host",
}


def group_sizes(inventory: Inventory) -> list[Finding]:
    """Check that every part is played, the single parts by one machine, voters by an odd number."""
    findings = []
    known = services.load()
    others = {group for host in inventory.hosts for group in host.groups} - {
        *known.groups,
        "all",
        "ungrouped",
    }
    for group in known.sized(*_EXPECTED):
        members = [host.name for host in inventory.group(group)]
        count = known.groups[group].hosts
        expected = _EXPECTED[count]
        if not members and count != services.AT_MOST_ONE:
            advice = suggestion(group, others, f"put a host into [{group}]")
            findings.append(Finding("groups.size", "all", f"group {group} is empty", advice, expected))
        elif len(members) > 1 and count != services.SOME:
            fact = f"group {group} has {counted(len(members), 'host')}"
            findings.append(
                Finding("groups.size", ",".join(members), fact, "leave one of them in it", expected)
            )
    return findings + [
        finding for group in known.sized(services.QUORUM) for finding in _votes(group, inventory)
    ]


def _votes(group: str, inventory: Inventory) -> Iterator[Finding]:
    members = [host.name for host in inventory.group(group)]
    if members and (len(members) < LEAST_QUORUM or len(members) % 2 == 0):
        yield Finding(
            "groups.size",
            ",".join(members),
            f"group {group} has {counted(len(members), 'voter')}",
            "add a host to it, or take one out",
            f"none, or an odd number of at least {LEAST_QUORUM}",
        )


def replication(host: Host, inventory: Inventory) -> list[Finding]:
    """Check that there are as many DataNodes as copies of a block."""
    wanted = host.variables.get("hdfs_replication")
    datanodes = len(inventory.group("datanodes"))
    if wanted is None or not datanodes or 1 <= int(wanted) <= datanodes:
        return []
    return [
        Finding(
            "hdfs.replication",
            host.name,
            f"hdfs_replication is {wanted} with {counted(datanodes, 'DataNode')}",
            "lower hdfs_replication, or add hosts to the group datanodes",
            f"1 to {datanodes}",
        )
    ]
