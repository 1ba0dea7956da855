"""Whether replicas find their places on the DataNodes that are left when one goes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ops.change import datanodes
from ops.change.result import Refusal
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.fsck import File

_MIB = 1024**2
# Of the space that is left once the blocks have moved, what a DataNode shall keep.
_FREE_SHARE = 0.1


def unplaced(
    nodes: Mapping[str, datanodes.Node], files: Sequence[File], node: str, replication: int, way: str
) -> Refusal | None:
    """Return that files want more replicas than DataNodes are left; None where each finds its places.

    HDFS would wait for ever: a block has moved when as many replicas are elsewhere as its file wants. There
    is a `way` out beside fewer replicas.
    """
    left = [name for name, one in nodes.items() if name != node and one.state == datanodes.SERVES]
    wanting = [file for file in files if file.replication > len(left) and file.blocks]
    most = max([file.replication for file in wanting], default=0)
    if not wanting and replication <= len(left):
        return None
    there = f"{counted(len(left), 'DataNode')} would be left"
    fact = (
        f"{counted(len(wanting), 'file wants', 'files want')} up to {counted(most, 'replica')}, and {there}"
        if wanting
        else f"new files want {counted(replication, 'replica')}, and {there}"
    )
    fewer = f"hdfs_replication: {len(left)} in the inventory and hdfs dfs -setrep -R {len(left)} / on a node"
    return Refusal(fact, f"{way}, or {fewer}")


def cramped(
    nodes: Mapping[str, datanodes.Node], files: Iterable[File], node: str, names: Mapping[str, str], way: str
) -> Refusal | None:
    """Return that the blocks of a host do not fit on those that are left; None where they do.

    A block moves if too few replicas are elsewhere, and to a DataNode that has none: what is free on one that
    has it already is no room for it. `names` has the DataNode of an address.
    """
    total, held = 0, Counter[str]()
    for file in files:
        for block in file.blocks:
            having = {names.get(place.rpartition(":")[0], place) for place in block.datanodes}
            if node in having and len(having) <= file.replication:
                total += block.length
                held.update(dict.fromkeys(having, block.length))
    room = sum(
        min(one.remaining * (1 - _FREE_SHARE), total - held[name])
        for name, one in nodes.items()
        if name != node and one.state == datanodes.SERVES
    )
    if total <= room:
        return None
    fact = f"{total // _MIB} MiB are to move, and the other DataNodes can take {int(room) // _MIB} MiB of it"
    return Refusal(fact, way)
