"""Services whose size follows from the host alone: a row each, and one factor where they are too many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakehouse.sizing import hdfs
from lakehouse.sizing.facts import USABLE, Cluster, Host
from lakehouse.sizing.units import clamp, down

# Of the usable memory, beside an engine.
MOST_BESIDE_ENGINES = 0.4
# Of the processors, what the JVM of one of them sees, and the least and the most of it.
PROCESSORS, LEAST_PROCESSORS, MOST_PROCESSORS = 1 / 4, 2, 8


@dataclass(frozen=True)
class Fixed:
    """One service: its variables (the first one set wins), its heap, bounds, and what it takes beside.

    A process is its heap and ``max(beside, 10 %)``, all in MiB; ``unit`` is how much of the process a
    variable of one MiB stands for.
    """

    variables: tuple[str, ...]
    heap: Callable[[Host, Cluster], float]
    least: int
    most: int
    beside: int = 64
    share: float = 0.1
    unit: int = 1

    def process(self, heap: int) -> int:
        """Return what the process takes, its overhead rounded up."""
        return heap + math.ceil(max(self.beside, self.share * heap))

    def heap_of(self, process: float) -> int:
        """Return the heap that fits into a process, rounded down and at least the minimum."""
        return max(self.least, down(min(process - self.beside, process / (1 + self.share))))

    def wanted(self, host: Host, cluster: Cluster) -> int:
        """Return the heap of this service on a host where nothing is short."""
        return max(self.least, down(clamp(self.heap(host, cluster), self.least, self.most)))

    def set_by_user(self, host: Host) -> int | None:
        """Return the heap that the user has set, if there is one."""
        return next((host.sizes[name] * self.unit for name in self.variables if name in host.sizes), None)


def part(divisor: int) -> Callable[[Host, Cluster], float]:
    """Return a heap that is this part of a host's memory."""
    return lambda host, _cluster: host.memory / divisor


# Sources: docs/sizing.md. The bounds of Spark's and Flink's daemons were measured on two cores.
FIXED: Mapping[str, Fixed] = {
    "namenode": Fixed(("hdfs_namenode_heap_mb",), hdfs.namenode, 256, 65536),
    "datanode": Fixed(("hdfs_datanode_heap_mb",), hdfs.datanode, 192, 31744),
    # Cloudera, "Tuning the metastore": 4 GB for 1 connection, 8 for 10, 12 for 40, with Hive's partitions.
    "metastore": Fixed(("hive_metastore_heap_mb",), part(16), 384, 8192),
    # No JVM: the budget is all of it, and half of the budget is shared_buffers.
    "postgresql": Fixed(("postgresql_shared_buffers_mb",), part(32), 192, 8192, beside=0, share=0, unit=2),
    # No JVM: what it has read, it keeps by numbers of files and tables.
    "catalog_past": Fixed(("catalog_past_memory_mb",), part(64), 256, 2048, beside=0, share=0),
    "spark_master": Fixed(("spark_master_heap_mb", "spark_daemon_memory_mb"), part(96), 192, 1024),
    # It serves the shuffle files of every application that has been here.
    "spark_worker": Fixed(("spark_daemon_memory_mb",), part(48), 192, 1024),
    "spark_history": Fixed(("spark_history_heap_mb", "spark_daemon_memory_mb"), part(48), 192, 4096),
    "spark_connect": Fixed(("spark_driver_memory_mb",), part(10), 768, 16384, beside=256),
    "spark_thrift": Fixed(("spark_driver_memory_mb",), part(10), 768, 16384, beside=256),
    "flink_jobmanager": Fixed(("flink_jobmanager_heap_mb",), part(32), 256, 8192, beside=192),
    "flink_sql_gateway": Fixed(("flink_sql_gateway_heap_mb",), part(48), 256, 4096, beside=128),
    "flink_history": Fixed(("flink_history_heap_mb",), part(96), 96, 1024),
}


def processors(cores: int) -> int:
    """Return how many processors a daemon's JVM is to see, 0 where it may see all: C/4, 2 to 8.

    By itself it starts up to 43 threads of collectors and 18 of compilers on 64 cores, as does each of its
    neighbours. More than there are would be an option that changes nothing.
    """
    seen = int(clamp(cores * PROCESSORS, LEAST_PROCESSORS, MOST_PROCESSORS))
    return seen if seen < cores else 0


def heaps(host: Host, cluster: Cluster, engines: bool) -> dict[str, int]:
    """Return the heap (MiB) of each fixed service that is placed on a host.

    Where they would take more than 0.4 of what is usable beside an engine, all that the user has not set
    shrink by one factor towards their minimum.
    """
    here = {name: row for name, row in FIXED.items() if name in host.services}
    said = {name: size for name, row in here.items() if (size := row.set_by_user(host)) is not None}
    free = {name: row for name, row in here.items() if name not in said}
    full = {name: row.wanted(host, cluster) for name, row in free.items()}
    taken = sum(here[name].process(size) for name, size in said.items())
    most = sum(row.process(full[name]) for name, row in free.items())
    least = sum(row.process(row.least) for row in free.values())
    limit = (
        (MOST_BESIDE_ENGINES if engines else 1)
        * USABLE
        * host.memory
        * (1 if engines else cluster.overcommit)
    )
    if taken + most > limit:
        factor = clamp((limit - taken - least) / (most - least), 0, 1) if most > least else 0.0
        full = {name: _shrunk(row, full[name], factor) for name, row in free.items()}
    return said | full


def _shrunk(row: Fixed, heap: int, factor: float) -> int:
    small, large = row.process(row.least), row.process(heap)
    return row.heap_of(small + factor * (large - small))
