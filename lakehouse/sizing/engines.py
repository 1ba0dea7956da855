"""Engines share by weight what the fixed services leave, each between its bounds."""

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
    """Return what the engines of a host take at the least (MiB): their minimum, or what the user has set."""
    here = placed(host)
    return sum(_said(host, here).get(name, row.least) for name, row in here.items())


def shares(host: Host, cluster: Cluster, taken: float) -> dict[str, float]:
    """Return the process (MiB) of each engine of a host, where fixed services have ``taken`` theirs.

    What the user has set comes first. The rest is shared by weight; who meets a bound gets it, and what
    then remains is shared again.
    """
    here = placed(host)
    said = _said(host, here)
    free = {name: row for name, row in here.items() if name not in said}
    divided = _divided(free, cluster.weights, cluster.usable(host) - taken - sum(said.values()))
    # Whole MiB, so that what is rounded up of it is not more.
    return said | {name: math.floor(size) for name, size in divided.items()}


def _said(host: Host, rows: Mapping[str, Engine]) -> dict[str, float]:
    """Return the processes that the user has set."""
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
    # Whichever bound moves more is certain; the others are looked at again without these.
    pinned = low if lacking >= spare else high
    if not pinned:
        return share
    rest = {name: row for name, row in rows.items() if name not in pinned}
    return pinned | _divided(rest, weights, amount - sum(pinned.values()))
