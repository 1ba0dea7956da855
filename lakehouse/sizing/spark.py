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
    """Divide a worker's memory (MiB): executors of 4 cores, of 2 or of 1, the most of which it has two.

    Fewer cores each where the heaps of so few executors would leave memory unused: a heap ends at 31 GiB.
    So two applications run on every worker that can hold two executors. Four divides 8, 16, 64 and 128; the
    five of Cloudera's and AWS's rule leave cores over.
    """
    given = int(host.sizes.get("spark_worker_cores", cores(host, worker)))
    most = int(host.sizes.get("spark_worker_cores", host.cores))
    least = max(2, worker * MOST_USED / MOST_HEAP)
    twice = (each for each in EXECUTOR_CORES if min(nearest(given / each), most // each) >= least)
    each = host.sizes.get("spark_executor_cores") or next(twice, 1)
    count = max(1, min(nearest(given / each), most // each, int(worker // LEAST_HEAP)))
    heap = host.sizes.get("spark_executor_memory_mb") or min(down(worker / count), MOST_HEAP)
    return Executors(count, each, heap)


def common(alone: Collection[Executors]) -> tuple[int, int]:
    """Return cores and heap (MiB) of all executors, by what each worker would have alone.

    They are the least of every worker's, so that one fits on each; but for workers whose own executors are
    less than half as large, or have fewer cores, where these have less than a quarter of the memory. One
    small host would make the executors of a large cluster as small as its own: no executor starts on it.
    """
    heap, cores = _usual(alone, lambda of: of.heap), _usual(alone, lambda of: of.cores)
    each = [of for of in alone if of.heap >= heap * LEAST_OF_USUAL and of.cores >= cores]
    return min(of.cores for of in each), min(of.heap for of in each)


def _usual(alone: Collection[Executors], value: Callable[[Executors], int]) -> int:
    """Return the value that workers with three quarters of all executors' memory reach."""
    below = FEW * sum(of.count * of.heap for of in alone)
    reached = 0
    for of in sorted(alone, key=value):
        reached = value(of)
        below -= of.count * of.heap
        if below < 0:
            break
    return reached


def count(host: Host, worker: float, each: int, heap: int) -> int:
    """Executors of common size on a worker: as many as its memory and its cores hold, which may be none."""
    cores = max(host.cores, host.sizes.get("spark_executor_cores", 0))
    most = host.sizes.get("spark_worker_cores", cores) // each
    return min(int(worker // heap), most)


def application_cores(counts: Iterable[int], each: int) -> int:
    """Cores of one application: all but one executor of each worker, which the next application starts in.

    Where workers have one, executors on half of the workers. The standalone queue is first come, first
    served, and without a limit an application takes all (docs/spark-standalone.md, docs/job-scheduling.md
    of Spark).
    """
    workers = [count for count in counts if count]
    return each * max(sum(count - 1 for count in workers), math.ceil(len(workers) / 2), 1)


def of_application(cap: int, cores: int, each: int) -> dict[str, int]:
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
        "spark_initial_executors": cap // each,
        # Threads of collectors, compilers and Iceberg follow it; by itself a JVM takes all cores.
        "spark_executor_processors": max(2, each),
    }
