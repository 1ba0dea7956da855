"""Services whose size follows from the host alone, and the factor that shrinks them if they are too many."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakehouse.model import services as catalogue
from lakehouse.model.services import Heap, Service
from lakehouse.sizing import hdfs
from lakehouse.sizing.facts import USABLE, Cluster, Host
from lakehouse.sizing.units import clamp, down

# Of the usable memory, beside an engine.
MOST_BESIDE_ENGINES = 0.4
# Of the processors, what the JVM of one of them sees, and the least and the most of it.
PROCESSORS, LEAST_PROCESSORS, MOST_PROCESSORS = 1 / 4, 2, 8


# Those whose heap follows from the cluster, too.
FORMULAS: Mapping[str, Callable[[Host, Cluster, float], float]] = {
    "namenode": hdfs.namenode,
    "datanode": hdfs.datanode,
}


@dataclass(frozen=True)
class Fixed:
    """One service: its variables (the first one set wins), and what the catalogue says of its heap."""

    service: str
    variables: tuple[str, ...]
    heap: Heap

    @property
    def least(self) -> int:
        """The least heap, in MiB."""
        return self.heap.least

    @property
    def unit(self) -> int:
        """How many MiB of the process one MiB of the variable stands for."""
        return self.heap.unit

    def process(self, heap: int) -> int:
        """Return what the process takes, its overhead rounded up."""
        return heap + math.ceil(max(self.heap.beside, self.heap.overhead * heap))

    def heap_of(self, process: float) -> int:
        """Return the heap that fits into a process, rounded down and at least the minimum."""
        return max(self.least, down(min(process - self.heap.beside, process / (1 + self.heap.overhead))))

    def wanted(self, host: Host, cluster: Cluster) -> int:
        """Return the heap of this service on a host with enough memory."""
        share = host.memory / self.heap.divisor
        formula = FORMULAS.get(self.service)
        size = formula(host, cluster, share) if formula else share
        return max(self.least, down(clamp(size, self.least, self.heap.most)))

    def set_by_user(self, host: Host) -> int | None:
        """Return the heap that the user has set, if there is one."""
        return next((host.sizes[name] * self.unit for name in self.variables if name in host.sizes), None)


def _of(row: Service, heap: Heap) -> Fixed:
    return Fixed(row.name, (row.memory[0], *([heap.fallback] if heap.fallback else [])), heap)


# Every row of the catalogue that has a heap; the sources are in docs/sizing.md.
FIXED: Mapping[str, Fixed] = {
    name: _of(row, row.heap) for name, row in catalogue.load().services.items() if row.heap
}


def processors(cores: int) -> int:
    """Return the number of processors for a daemon's JVM, 0 for no limit: C/4, 2 to 8.

    By default each JVM starts up to 43 threads of collectors and 18 of compilers on 64 cores. A limit of at
    least the number of cores would change nothing.
    """
    limit = int(clamp(cores * PROCESSORS, LEAST_PROCESSORS, MOST_PROCESSORS))
    return limit if limit < cores else 0


def heaps(host: Host, cluster: Cluster, engines: float) -> dict[str, int]:
    """Return the heap (MiB) of each fixed service that is placed on a host.

    ``engines`` is the least memory of the host's engines, in MiB. Where the services would take more than 0.4
    of the usable memory beside an engine, or leave less than that, all sizes that the user has not set shrink
    by one factor towards their minimum.
    """
    rows = {name: row for name, row in FIXED.items() if name in host.services}
    user_heaps = {name: size for name, row in rows.items() if (size := row.set_by_user(host)) is not None}
    scalable = {name: row for name, row in rows.items() if name not in user_heaps}
    full = {name: row.wanted(host, cluster) for name, row in scalable.items()}
    user_memory = sum(rows[name].process(size) for name, size in user_heaps.items())
    most = sum(row.process(full[name]) for name, row in scalable.items())
    least = sum(row.process(row.least) for row in scalable.values())
    limit = cluster.usable(host) - engines
    if engines:
        limit = min(limit, MOST_BESIDE_ENGINES * USABLE * host.memory)
    if user_memory + most > limit:
        factor = clamp((limit - user_memory - least) / (most - least), 0, 1) if most > least else 0.0
        full = {name: _shrunk(row, full[name], factor) for name, row in scalable.items()}
    return user_heaps | full


def _shrunk(row: Fixed, heap: int, factor: float) -> int:
    small, large = row.process(row.least), row.process(heap)
    # Whole MiB, so that what is rounded up of it is not more.
    return row.heap_of(int(small + factor * (large - small)))
