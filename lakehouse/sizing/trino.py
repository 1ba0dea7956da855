"""Trino: from a process to its heap and the limits of a query."""

from __future__ import annotations

import math
from collections.abc import Iterable

from lakehouse.sizing.units import clamp, down

LEAST_HEAP, MOST_HEAP = 1024, 384 * 1024
# 460 to 660 MiB were measured beside a heap of 1 GiB.
LEAST_BESIDE, BESIDE = 512, 0.15
# Parts of the heap. What a query may take and what is not counted must leave room for the rest, or Trino
# refuses to start: deployment.md and admin/properties-memory-management of Trino, whose own defaults are
# 0.3 and 0.3.
PER_NODE, HEADROOM = 0.4, 0.3
# Trino documents 32 MiB for G1; a small heap has hundreds of regions too.
REGIONS, MOST_REGION = 512, 32


def heap(process: float) -> int:
    """Heap that fits into a process: what max(512 MiB, 15 %) leaves, rounded down."""
    return max(LEAST_HEAP, min(MOST_HEAP, down(process - max(LEAST_BESIDE, BESIDE * process))))


def process(size: int) -> int:
    """Return what a process of this heap takes, the inverse of ``heap``."""
    return size + math.ceil(max(LEAST_BESIDE, size * BESIDE / (1 - BESIDE)))


def limits(size: int) -> dict[str, int]:
    """Memory of a query on a node with this heap, and what Trino keeps for what it does not count."""
    return {
        "trino_query_max_memory_per_node_mb": down(size * PER_NODE),
        "trino_heap_headroom_mb": int(size * HEADROOM),
        "trino_region_mb": int(clamp(2 ** int(math.log2(max(1, size / REGIONS))), 1, MOST_REGION)),
    }


def query_max_memory(per_node: Iterable[int]) -> int:
    """Return the memory limit of a query in the cluster: the sum of the workers' limits.

    Each worker enforces its own limit, so that a small worker does not reduce those of others.
    """
    return sum(list(per_node) or [limits(LEAST_HEAP)["trino_query_max_memory_per_node_mb"]])
