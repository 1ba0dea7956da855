"""Which machines play which part, and whether there are enough of them."""

from __future__ import annotations

from lakehouse import services
from lakehouse.inventory import Host, Inventory
from lakehouse.validation.finding import Finding
from lakehouse.validation.variables import suggestion


def group_sizes(inventory: Inventory) -> list[Finding]:
    """Check that every part is played, and the single parts by one machine."""
    findings = []
    known = services.load()
    # One machine each until high availability is switched on.
    single = known.sized(services.ONE)
    others = {group for host in inventory.hosts for group in host.groups} - {
        *known.groups,
        "all",
        "ungrouped",
    }
    for group in (*single, *known.sized(services.SOME)):
        members = [host.name for host in inventory.group(group)]
        expected = "exactly one host" if group in single else "at least one host"
        if not members:
            advice = suggestion(group, others, f"put a host into [{group}]")
            findings.append(Finding("groups.size", "all", f"group {group} is empty", advice, expected))
        elif group in single and len(members) > 1:
            fact = f"group {group} has {len(members)} hosts"
            findings.append(
                Finding("groups.size", ",".join(members), fact, "leave one of them in it", expected)
            )
    return findings


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
            f"hdfs_replication is {wanted} with {datanodes} DataNodes",
            "lower hdfs_replication, or add hosts to the group datanodes",
            f"1 to {datanodes}",
        )
    ]
