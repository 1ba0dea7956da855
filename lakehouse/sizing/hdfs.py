"""HDFS: heaps by blocks, handlers by DataNodes."""

from __future__ import annotations

import math

from lakehouse.model import services
from lakehouse.sizing.facts import Cluster, Host
from lakehouse.sizing.units import GIB, clamp, compressed

# What shares a host's memory with the daemons that it runs beside.
ENGINES = frozenset({"spark_worker", "trino", "flink_taskmanager"})

# A NameNode beside these alone has its host to itself: they take some MiB.
EXPORTERS = frozenset(row.name for row in services.load().services.values() if row.role == "exporters")

# Half of a block of 128 MiB: files end somewhere in their last block.
MEAN_BLOCK_MIB = 64
GB_IN_MIB = 1e9 / 2**20
# Of the memory, the largest heap of a NameNode that has its host to itself, where a checkpoint reads the
# namespace into a heap as large: with what they take beside it both are 0.825.
ALONE = 3 / 8
# The same beside other masters, whose heaps at their most are a fifth of the memory.
BESIDE_MASTERS = 1 / 4
# Seconds between two full reports of a DataNode: a minute, and up to HDFS's own six hours as many as keep the
# NameNode at this many replicas a second, less than a hundredth of what it processes: Shvachko, "HDFS
# Scalability: The Limits to Growth" (2010), 639,713 blocks a second. In steps that double, since another
# interval is a restart.
LEAST_REPORT, MOST_REPORT, REPLICAS_PER_SECOND = 60, 21600, 5000


def blocks(cluster: Cluster) -> float:
    """Return how many blocks the DataNodes' disks can hold: raw capacity / (replication x 64 MiB)."""
    capacity = sum(host.disk_gb for host in cluster.having("datanode")) * GB_IN_MIB
    return capacity / (max(1, cluster.replication) * MEAN_BLOCK_MIB)


def needed(cluster: Cluster) -> float:
    """Heap in MiB that a NameNode needs for full disks: 1 GiB + 1.1 GiB per million blocks, 0 if unknown.

    Cloudera, "HDFS heap sizing" and "Examples of estimating NameNode heap memory": 1 GiB per million
    blocks, and 10 % for G1.
    """
    millions = blocks(cluster) / 1e6
    return (1 + 1.1 * millions) * GIB if millions else 0.0


def namenode(host: Host, cluster: Cluster, share: float) -> float:
    """Heap of a NameNode: what it needs, at most its share beside an engine; else M/4, or 3M/8 where alone.

    Where the disks are not known, its share, or 3M/8 where it is alone, and no more than 16 GiB. Not more
    than is needed, because unused heap makes collection worse.
    """
    need = needed(cluster)
    if host.services - EXPORTERS == {"namenode"}:
        most = ALONE * host.memory
    elif need and not host.services & ENGINES:
        most = max(share, BESIDE_MASTERS * host.memory)
    else:
        most = share
    return compressed(min(need or 16 * GIB, most))


def datanode(host: Host, _cluster: Cluster, share: float) -> float:
    """Heap of a DataNode: its share, at most 4096 MiB, and 1 GiB per million replicas above four.

    Cloudera: 4 to 8 GB.
    """
    millions = host.disk_gb * GB_IN_MIB / MEAN_BLOCK_MIB / 1e6
    return clamp(share, 192, 4096) + max(0.0, millions - 4) * GIB


def block_report_seconds(cluster: Cluster) -> int:
    """Return the seconds between two full block reports of a DataNode, by what the disks can hold."""
    replicas = blocks(cluster) * max(1, cluster.replication)
    seconds = LEAST_REPORT
    while seconds < min(replicas / REPLICAS_PER_SECOND, MOST_REPORT):
        seconds *= 2
    return min(seconds, MOST_REPORT)


def handlers(datanodes: int) -> int:
    """Handlers of the NameNode's RPC: 20 x ln(DataNodes), 10 to 200.

    Parse Consulting, "Namenode Handler Configuration Best Practice"; Ambari has 25 x cores, Hadoop 10.
    """
    return int(clamp(20 * math.log(max(1, datanodes)), 10, 200))
