"""Engines share the memory that fixed services leave by weight, each between its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakehouse.sizing import spark, trino
from lakehouse.sizing.facts import Cluster, Host


@dataclass(frozen=True)
class Engine:
    """One engine: its service, the bounds of its process (MiB), and the variable that sets it."""

    service: str
    least: int
    most: float
    variable: str
    process: Callable[[int], float]


ENGINES: Mapping[str, Engine] = {
    "spark": Engine(
        "spark_worker", 624, float("inf"), "spark_worker_memory_mb", lambda memory: memory * spark.BESIDE
    ),
    "trino": Engine("trino", 1536, trino.process(trino.MOST_HEAP), "trino_heap_mb", trino.process),
    "flink": Engine(
        "flink_taskmanager", 1024, float("inf"), "flink_taskmanager_memory_mb", lambda memory: memory
    ),
}


def placed(host: Host) -> dict[str, Engine]:
    """Return the engines that have a process on a host."""
    return {name: engine for name, engine in ENGINES.items() if engine.service in host.services}


def least(host: Host) -> float:
    """Return the least memory (MiB) of the engines of a host: their minimum, or the sizes of the user."""
    engines = placed(host)
    return sum(_set_by_user(host, engines).get(name, row.least) for name, row in engines.items())


def shares(host: Host, cluster: Cluster, fixed: float) -> dict[str, float]:
    """Return the process (MiB) of each engine of a host beside ``fixed`` MiB of other services.

    Sizes of the user come first. The remaining memory is shared by weight; an engine outside of its bounds
    gets the bound, and the others share again.
    """
    engines = placed(host)
    user_sizes = _set_by_user(host, engines)
    adjustable = {name: row for name, row in engines.items() if name not in user_sizes}
    divided = _divided(adjustable, cluster.weights, cluster.usable(host) - fixed - sum(user_sizes.values()))
    # Whole MiB, so that rounding up later does not exceed the memory.
    return user_sizes | {name: math.floor(size) for name, size in divided.items()}


def _set_by_user(host: Host, rows: Mapping[str, Engine]) -> dict[str, float]:
    """Return the sizes of processes that the user has set."""
    return {
        name: row.process(host.sizes[row.variable])
        for name, row in rows.items()
        if row.variable in host.sizes
    }


def _divided(rows: Mapping[str, Engine], weights: Mapping[str, float], amount: float) -> dict[str, float]:
    if not rows:
        return {}
    total = sum(weights[name] for name in rows)
    share = {name: amount * weights[name] / total for name in rows}
    low = {name: float(row.least) for name, row in rows.items() if share[name] < row.least}
    high = {name: row.most for name, row in rows.items() if share[name] > row.most}
    lacking = sum(size - share[name] for name, size in low.items())
    spare = sum(share[name] - size for name, size in high.items())
    # The bounds that move more memory are final; the other engines are divided again.
    pinned = low if lacking >= spare else high
    if not pinned:
        return share
    unpinned = {name: row for name, row in rows.items() if name not in pinned}
    return pinned | _divided(unpinned, weights, amount - sum(pinned.values()))
