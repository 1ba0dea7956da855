"""HDFS: heaps by blocks, handlers by DataNodes."""

from __future__ import annotations

import math

from lakehouse.sizing.facts import Cluster, Host
from lakehouse.sizing.units import GIB, clamp, compressed

# Half of a block of 128 MiB: files end somewhere in their last block.
MEAN_BLOCK_MIB = 64
GB_IN_MIB = 1e9 / 2**20
# Of the memory, the largest heap of a NameNode that has its host to itself, where a checkpoint reads the
# namespace into a heap as large: with what they take beside it both are 0.825.
ALONE = 3 / 8


def blocks(cluster: Cluster) -> float:
    """Return how many blocks the DataNodes' disks can hold: raw capacity / (replication x 64 MiB)."""
    capacity = sum(host.disk_gb for host in cluster.having("datanode")) * GB_IN_MIB
    return capacity / (max(1, cluster.replication) * MEAN_BLOCK_MIB)


def namenode(host: Host, cluster: Cluster, share: float) -> float:
    """Heap of a NameNode: 1 GiB + 1.1 GiB per million blocks, at most its share, or 3M/8 where it is alone.

    Where nobody has said how large the disks are, that most and no more than 16 GiB.

    Cloudera, "HDFS heap sizing" and "Examples of estimating NameNode heap memory": 1 GiB per million
    blocks, and 10 % for G1. Not more than is needed, because unused heap makes collection worse.
    """
    millions = blocks(cluster) / 1e6
    need = (1 + 1.1 * millions) * GIB if millions else 16 * GIB
    most = ALONE * host.memory if host.services == {"namenode"} else share
    return compressed(min(need, most))


def datanode(host: Host, _cluster: Cluster, share: float) -> float:
    """Heap of a DataNode: its share, at most 4096 MiB, and 1 GiB per million replicas above four.

    Cloudera: 4 to 8 GB.
    """
    millions = host.disk_gb * GB_IN_MIB / MEAN_BLOCK_MIB / 1e6
    return clamp(share, 192, 4096) + max(0.0, millions - 4) * GIB


def handlers(datanodes: int) -> int:
    """Handlers of the NameNode's RPC: 20 x ln(DataNodes), 10 to 200.

    Parse Consulting, "Namenode Handler Configuration Best Practice"; Ambari has 25 x cores, Hadoop 10.
    """
    return int(clamp(20 * math.log(max(1, datanodes)), 10, 200))
