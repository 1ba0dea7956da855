"""Who a cluster and its DataNodes are: an identity that two of them have lets one take the other's blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakehouse.validation.finding import Finding

# The shipped inventories: every copy of one has its id, and only the original its addresses.
EXAMPLES = {
    "CID-lakehouse": ("192.168.1.184", "192.168.1.185", "192.168.1.186"),
    "CID-lakehouse-local": ("172.28.0.11", "172.28.0.12", "172.28.0.13"),
}


def example(host: str, cluster_id: str, addresses: Iterable[str]) -> list[Finding]:
    """Find the id of an example on a NameNode that is about to be formatted in another cluster."""
    original = EXAMPLES.get(cluster_id)
    if original is None or set(original) & set(addresses):
        return []
    fact = f"the NameNode is to be formatted with the example's id, {cluster_id}"
    advice = (
        "choose lakehouse_cluster_id now: it cannot be changed later, and every copy of the example has this"
    )
    return [Finding("hdfs.cluster_id", host, fact, advice, "an id that no other cluster has")]


def doubled(datanodes: Mapping[str, Iterable[str]]) -> list[Finding]:
    """Find DataNodes with one uuid, as cloned machines have: the NameNode would know one at a time."""
    hosts: dict[str, list[str]] = {}
    for host, uuids in datanodes.items():
        for uuid in set(uuids):
            hosts.setdefault(uuid, []).append(host)
    advice = "one is a clone: empty the directories of lakehouse_datanode_dirs on all but one of them"
    return [
        Finding("hdfs.datanode_uuid", ",".join(names), f"all are the DataNode {uuid}", advice, "a uuid each")
        for uuid, names in hosts.items()
        if len(names) > 1
    ]
