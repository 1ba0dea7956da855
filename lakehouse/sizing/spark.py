"""Spark: a worker's memory and cores, executors that fit on every worker, and the share of an application."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from lakehouse.sizing.facts import Host
from lakehouse.sizing.units import MOST_COMPRESSED, clamp, down, nearest

# Standalone books an executor's heap alone: a fifth on top is its JVM's and that of Python's workers.
BESIDE = 1.2
# Spark refuses less than 450 MiB, and above 31 GiB pointers take twice as much.
LEAST_HEAP, MOST_HEAP = 512, MOST_COMPRESSED
# Of a worker's memory, what executors are to reach.
MOST_USED = 0.85
# Cores of an executor: the most of which a worker has two.
EXECUTOR_CORES = (4, 2)
# Workers with less than this part of Spark's memory do not decide for the others, if their executors are
# less than this part of theirs.
FEW, LEAST_OF_USUAL = 1 / 4, 1 / 2
# From so many cores of an application on, a task reads 128 MB instead of 64.
MANY_CORES = 100


@dataclass(frozen=True)
class Executors:
    """Executors of one worker: how many, cores of each, heap of each in MiB."""

    count: int
    cores: int
    heap: int


def cores(host: Host, worker: float) -> int:
    """Cores that a worker of this memory may give away: one for each M/16 (512 to 2048 MiB) of it."""
    return int(clamp(nearest(worker / clamp(host.memory / 16, LEAST_HEAP, 2048)), 1, max(1, host.cores)))


def of_worker(host: Host, worker: float) -> Executors:
    """Divide a worker's memory (MiB): executors of 4, 2 or 1 cores, the largest size that fits twice.

    Executors have fewer cores where so few heaps, of at most 31 GiB, would leave memory unused. So two
    applications run on every worker that can hold two executors. Four divides 8, 16, 64 and 128; five, the
    rule of Cloudera and AWS, leaves cores unused.
    """
    worker_cores = int(host.sizes.get("spark_worker_cores", cores(host, worker)))
    most_cores = int(host.sizes.get("spark_worker_cores", host.cores))
    least = max(2, worker * MOST_USED / MOST_HEAP)
    options = (
        executor_cores
        for executor_cores in EXECUTOR_CORES
        if min(nearest(worker_cores / executor_cores), most_cores // executor_cores) >= least
    )
    executor_cores = host.sizes.get("spark_executor_cores") or next(options, 1)
    count = max(
        1,
        min(nearest(worker_cores / executor_cores), most_cores // executor_cores, int(worker // LEAST_HEAP)),
    )
    heap = host.sizes.get("spark_executor_memory_mb") or min(down(worker / count), MOST_HEAP)
    return Executors(count, executor_cores, heap)


def common(candidates: Collection[Executors]) -> tuple[int, int]:
    """Return cores and heap (MiB) of all executors, from the executors that each worker would have alone.

    They are the minimum of all workers, so that one fits on each. Workers whose own executors are less than
    half as large, or have fewer cores, are excluded if they have less than a quarter of the memory: one small
    host would shrink the executors of a large cluster, so no executor starts on it.
    """
    heap, cores = (
        _usual(candidates, lambda executors: executors.heap),
        _usual(candidates, lambda executors: executors.cores),
    )
    usual = [
        executors
        for executors in candidates
        if executors.heap >= heap * LEAST_OF_USUAL and executors.cores >= cores
    ]
    return min(executors.cores for executors in usual), min(executors.heap for executors in usual)


def _usual(candidates: Collection[Executors], value: Callable[[Executors], int]) -> int:
    """Return the value that workers with three quarters of all executors' memory reach."""
    remaining = FEW * sum(executors.count * executors.heap for executors in candidates)
    result = 0
    for executors in sorted(candidates, key=value):
        result = value(executors)
        remaining -= executors.count * executors.heap
        if remaining < 0:
            break
    return result


def count(host: Host, worker: float, executor_cores: int, heap: int) -> int:
    """Return the number of executors that fit into a worker's memory and cores, possibly none."""
    cores = max(host.cores, host.sizes.get("spark_executor_cores", 0))
    most = host.sizes.get("spark_worker_cores", cores) // executor_cores
    return min(int(worker // heap), most)


def application_cores(counts: Iterable[int], executor_cores: int) -> int:
    """Return the cores of an application: all but one executor of each worker, left for the next application.

    Where workers have one executor, those of half of the workers. The standalone scheduler is FIFO, and
    without a limit an application gets all cores (docs/spark-standalone.md, docs/job-scheduling.md of Spark).
    """
    workers = [count for count in counts if count]
    return executor_cores * max(sum(count - 1 for count in workers), math.ceil(len(workers) / 2), 1)


def of_application(cap: int, cores: int, executor_cores: int) -> dict[str, int]:
    """Settings that follow from an application's cores, those of all workers and those of each executor.

    ``spark_shuffle_initial_partitions`` is the upper bound of a shuffle's tasks, at least one for each core
    of the application; adaptive execution merges them by their size. ``spark.sql.shuffle.partitions`` itself
    stays small: Iceberg cuts small tables to pieces by it, and streaming state keeps it for ever.
    """
    return {
        "spark_shuffle_partitions": cap,
        "spark_shuffle_initial_partitions": int(clamp(4 * cores, 32, max(2000, cap))),
        "spark_advisory_partition_mb": 128 if cap >= MANY_CORES else 64,
        "spark_delta_snapshot_partitions": int(clamp(cap, 2, 16)),
        "spark_initial_executors": cap // executor_cores,
        # It limits threads of collectors, compilers and Iceberg; by default a JVM uses all cores.
        "spark_executor_processors": max(2, executor_cores),
    }
