"""Whether replicas fit on the remaining DataNodes when one is decommissioned. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lakehouse.rolling import datanodes
from lakehouse.rolling.result import Refusal
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.fsck import File

_MIB = 1024**2
# Share of a DataNode's free space that stays free.
_FREE_SHARE = 0.1


def unplaced(
    nodes: Mapping[str, datanodes.Node], files: Sequence[File], node: str, replication: int, way: str
) -> Refusal | None:
    """Return that files have more replicas than DataNodes would remain; None where none has.

    HDFS would wait forever for enough replicas elsewhere. `way` is an alternative to fewer replicas.
    """
    remaining = _others(nodes, node)
    unplaceable = [file for file in files if file.replication > len(remaining) and file.blocks]
    most = max([file.replication for file in unplaceable], default=0)
    if not unplaceable and replication <= len(remaining):
        return None
    requirement = (
        f"{counted(len(unplaceable), 'file wants', 'files want')} up to {counted(most, 'replica')}"
        if unplaceable
        else f"new files want {counted(replication, 'replica')}"
    )
    number = len(remaining)
    fewer = f"hdfs_replication: {number} in the inventory and hdfs dfs -setrep -R {number} / on a node"
    return Refusal(f"{requirement}, and {counted(number, 'DataNode')} would be left", f"{way}, or {fewer}")


def cramped(
    nodes: Mapping[str, datanodes.Node], files: Iterable[File], node: str, names: Mapping[str, str], way: str
) -> Refusal | None:
    """Return that the blocks of a host do not fit on the remaining DataNodes; None where they do.

    A block moves if it has too few replicas elsewhere, and only to a DataNode without a replica of it.
    `names` has the DataNode of an address.
    """
    total, replica_bytes = 0, Counter[str]()
    for file in files:
        for block in file.blocks:
            holders = {names.get(place.rpartition(":")[0], place) for place in block.datanodes}
            if node in holders and len(holders) <= file.replication:
                total += block.length
                replica_bytes.update(dict.fromkeys(holders, block.length))
    space = sum(
        min(row.remaining * (1 - _FREE_SHARE), total - replica_bytes[name])
        for name, row in _others(nodes, node).items()
    )
    if total <= space:
        return None
    fact = f"{total // _MIB} MiB are to move, and the other DataNodes can take {int(space) // _MIB} MiB of it"
    return Refusal(fact, way)


def _others(nodes: Mapping[str, datanodes.Node], node: str) -> dict[str, datanodes.Node]:
    """Return the other DataNodes that are in service."""
    return {name: row for name, row in nodes.items() if name != node and row.state == datanodes.SERVES}
