"""What is true of every machine from 2 GiB to 1 TiB and of every placement."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lakehouse.sizing import Cluster, Host, plan
from lakehouse.sizing.engines import ENGINES, placed
from lakehouse.sizing.fixed import FIXED
from lakehouse.sizing.placements import OF_ENGINE
from lakehouse.sizing.postgresql import POOLS
from lakehouse.sizing.units import GIB, LEAST_WIDE, MOST_COMPRESSED, step

MASTERS = sorted(FIXED.keys() - {"spark_worker"})
memories = st.one_of(st.integers(2048, 16384), st.integers(2048, 1024 * GIB))
cores = st.integers(1, 128)
disks = st.one_of(st.just(0), st.integers(50, 400_000))
placements = st.builds(
    lambda masters, engines: frozenset(masters).union(*(OF_ENGINE[name] for name in engines)),
    st.frozensets(st.sampled_from(MASTERS)),
    st.frozensets(st.sampled_from(sorted(OF_ENGINE))),
)
factors = st.sampled_from((1.0, 1.0, 1.2, 1.5))


@st.composite
def clusters(draw: st.DrawFn, least: int = 1, most: int = 4) -> Cluster:
    """Hosts of any size with any services."""
    hosts = [
        Host(f"n{number}", draw(memories), draw(cores), draw(placements), draw(disks))
        for number in range(draw(st.integers(least, most)))
    ]
    return Cluster(tuple(hosts), draw(st.integers(1, 3)), draw(factors))


def one(memory_mb: int, processors: int, services: Collection[str]) -> Cluster:
    """A cluster of one host."""
    return Cluster((Host("n1", memory_mb, processors, frozenset(services)),))


def shares(cluster: Cluster) -> dict[str, int]:
    """Processes of the first host; an engine's is the most that it may take."""
    return dict(plan(cluster).processes[cluster.hosts[0].name])


def least(host: Host) -> float:
    """What the services of a host take where nothing but the user's sizes is more than its minimum."""
    services = sum(
        row.process(row.set_by_user(host) or row.least)
        for name, row in FIXED.items()
        if name in host.services
    )
    engines = placed(host).values()
    return services + sum(
        row.process(host.sizes[row.variable]) if row.variable in host.sizes else row.least for row in engines
    )


def taken(host: Host, sizes: Mapping[str, int]) -> float:
    """What the services of a host take, by the sizes that they are given."""
    services = sum(
        row.process(sizes[row.variables[0]] * row.unit)
        for name, row in FIXED.items()
        if name in host.services
    )
    return services + sum(row.process(sizes[row.variable]) for row in placed(host).values())


def sums_up(cluster: Cluster) -> None:
    """Each host keeps to its share, or has a gap: even at their least its services need more."""
    made = plan(cluster)
    gaps = {gap.host: gap for gap in made.gaps}
    for host in cluster.hosts:
        usable = 0.85 * cluster.overcommit * host.memory
        if host.name not in gaps:
            assert taken(host, made.sizes[host.name]) <= usable
            continue
        assert least(host) > usable
        assert sum(gaps[host.name].services.values()) - usable <= gaps[host.name].missing_mb
        assert gaps[host.name].services == made.processes[host.name]


@given(clusters())
@example(one(2048, 1, {"spark_worker", "catalog_past"}))
def test_the_processes_of_a_host_sum_to_its_share_or_not_even_their_least_does(cluster: Cluster) -> None:
    sums_up(cluster)


@given(clusters())
def test_every_size_is_at_least_its_minimum(cluster: Cluster) -> None:
    made = plan(cluster)
    for host in cluster.hosts:
        sizes = made.sizes[host.name]
        for row in FIXED.values():
            assert sizes[row.variables[0]] * row.unit >= row.least
        assert sizes["trino_heap_mb"] >= 1024
        assert sizes["flink_taskmanager_memory_mb"] >= 1024
        assert sizes["spark_worker_memory_mb"] >= 512
        # Of these nothing means all that there are.
        assert all(size >= 1 for name, size in sizes.items() if name != "node_daemon_processors")


@given(memories, st.integers(0, 64 * GIB), cores, placements)
def test_more_memory_makes_no_process_smaller(
    memory: int, more: int, processors: int, services: frozenset[str]
) -> None:
    small, large = (shares(one(size, processors, services)) for size in (memory, memory + more))
    for name, size in small.items():
        assert large[name] >= size - 2 * step(size), name


@given(memories, cores, placements, st.sampled_from(sorted(OF_ENGINE)))
def test_an_engine_less_shrinks_nobody(
    memory: int, processors: int, services: frozenset[str], engine: str
) -> None:
    before = shares(one(memory, processors, services | OF_ENGINE[engine]))
    after = shares(one(memory, processors, services - OF_ENGINE[engine]))
    for name, size in after.items():
        assert size >= before[name] - 2 * step(before[name]), name


@given(st.integers(6144, 1024 * GIB), st.integers(2, 128), st.sampled_from(sorted(OF_ENGINE)))
def test_an_engine_alone_has_most_of_the_host(memory: int, processors: int, engine: str) -> None:
    taken = shares(one(memory, processors, OF_ENGINE[engine]))
    process = taken["spark_executors" if engine == "spark" else ENGINES[engine].service]
    if engine == "spark":
        # A heap has at most 31 GiB, and an executor at least one core.
        assume(memory / processors < 31 * GIB)
    assert process >= min(0.7 * memory, ENGINES[engine].most - 1024)


@given(clusters(), st.permutations(range(4)))
@example(
    # As much memory and other cores, and a host that only has to know about them.
    Cluster(
        (
            *(Host(f"n{cores}", 8832, cores, frozenset(OF_ENGINE["flink"])) for cores in (1, 2)),
            Host("n3", 2048, 1, frozenset()),
        )
    ),
    [1, 0, 2, 3],
)
def test_the_order_of_hosts_does_not_matter(cluster: Cluster, order: list[int]) -> None:
    hosts = [cluster.hosts[number] for number in order if number < len(cluster.hosts)]
    again = plan(replace(cluster, hosts=tuple(hosts)))
    assert (again.sizes, again.processes, again.gaps) == (
        plan(cluster).sizes,
        plan(cluster).processes,
        plan(cluster).gaps,
    )


@given(st.integers(16, 8192), st.integers(0, 127), cores, placements)
def test_a_few_mib_change_no_size(parts: int, more: int, processors: int, services: frozenset[str]) -> None:
    one_size, other = (
        plan(one(128 * parts + extra, processors, services)).sizes["n1"] for extra in (0, more)
    )
    assert one_size == other


@given(clusters())
def test_executors_fit_on_the_workers_that_have_some(cluster: Cluster) -> None:
    made = plan(cluster)
    workers = cluster.having("spark_worker")
    counts = []
    for host in workers:
        of = made.sizes[host.name]
        each, heap = of["spark_executor_cores"], of["spark_executor_memory_mb"]
        counts.append(min(of["spark_worker_cores"] // each, of["spark_worker_memory_mb"] // heap))
        assert of["spark_worker_cores"] <= max(1, host.cores)
        assert 450 < heap <= MOST_COMPRESSED
    # Small workers among large ones have none.
    counts = [count for count in counts if count]
    assert bool(counts) == bool(workers)
    if workers:
        of = made.sizes[workers[0].name]
        each, cap = of["spark_executor_cores"], of["spark_application_cores"]
        assert each <= cap <= sum(counts) * each
        assert of["spark_initial_executors"] * each <= cap
        assert of["spark_shuffle_initial_partitions"] >= cap
        if sum(counts) >= 2 and max(counts) >= 2:
            assert cap < sum(counts) * each, "a second application gets no executor"
        if min(counts) >= 4:
            assert cap >= 0.75 * sum(counts) * each


@given(clusters())
def test_a_daemon_sees_a_part_of_a_large_machines_processors(cluster: Cluster) -> None:
    sizes = plan(cluster).sizes
    for host in cluster.hosts:
        seen = sizes[host.name]["node_daemon_processors"]
        assert seen == 0 or 2 <= seen <= 8
        assert seen < host.cores
        assert seen or host.cores <= 2


@given(clusters())
def test_limits_of_trino_leave_room_in_its_heap(cluster: Cluster) -> None:
    for of in plan(cluster).sizes.values():
        node, headroom = of["trino_query_max_memory_per_node_mb"], of["trino_heap_headroom_mb"]
        assert node + headroom < of["trino_heap_mb"]
        assert node <= of["trino_query_max_memory_mb"]
    workers = cluster.having("trino_worker")
    if workers:
        sizes = [plan(cluster).sizes[host.name] for host in workers]
        total = sum(of["trino_query_max_memory_per_node_mb"] for of in sizes)
        assert sizes[0]["trino_query_max_memory_mb"] == total


ENGINES_ALONE: frozenset[str] = frozenset().union(*OF_ENGINE.values())


@given(clusters(), memories, cores)
def test_a_host_more_makes_no_limit_of_trino_and_no_parallelism_of_flink_smaller(
    cluster: Cluster, memory: int, processors: int
) -> None:
    more = replace(cluster, hosts=(*cluster.hosts, Host("more", memory, processors, ENGINES_ALONE)))
    before, after = (plan(each).sizes[cluster.hosts[0].name] for each in (cluster, more))
    names = ["flink_parallelism"] if cluster.having("flink_taskmanager") else []
    names += ["trino_query_max_memory_mb"] if cluster.having("trino_worker") else []
    assert all(after[name] >= before[name] for name in names)


@given(st.integers(1, 5), memories, cores, memories, st.integers(1, 128))
def test_a_small_host_more_does_not_make_the_executors_of_equal_hosts_small(
    count: int, memory: int, processors: int, of_other: int, cores_of_other: int
) -> None:
    hosts = tuple(Host(f"n{number}", memory, processors, ENGINES_ALONE) for number in range(count))
    other = Host("other", of_other, cores_of_other, ENGINES_ALONE)
    alone = [plan(Cluster((each,))).sizes[each.name] for each in (hosts[0], other)]
    assume(alone[1]["spark_worker_memory_mb"] < count * alone[0]["spark_worker_memory_mb"] / 3)
    before, after = (plan(Cluster(each)).sizes["n0"] for each in (hosts, (*hosts, other)))
    assert after["spark_executor_cores"] == before["spark_executor_cores"]
    assert after["spark_executor_memory_mb"] >= before["spark_executor_memory_mb"] / 2
    assert after["spark_application_cores"] >= before["spark_application_cores"]


@given(clusters())
def test_the_parts_of_a_taskmanager_sum_to_its_process(cluster: Cluster) -> None:
    for of in plan(cluster).sizes.values():
        parts = ("managed", "network", "metaspace", "overhead", "task_heap")
        total = sum(of[f"flink_taskmanager_{part}_mb"] for part in parts) + 128 + 128
        assert total == of["flink_taskmanager_memory_mb"]
        assert of["flink_taskmanager_task_heap_mb"] >= 64
        assert of["flink_taskmanager_slots"] >= 1
    tasks = [plan(cluster).sizes[host.name] for host in cluster.having("flink_taskmanager")]
    if tasks:
        assert 1 <= tasks[0]["flink_parallelism"] <= sum(of["flink_taskmanager_slots"] for of in tasks)


@given(clusters())
def test_the_metastores_find_their_connections(cluster: Cluster) -> None:
    made = plan(cluster)
    pools = sum(made.sizes[host.name]["hive_metastore_pool_size"] for host in cluster.having("metastore"))
    for of in made.sizes.values():
        assert POOLS * pools + 13 <= of["postgresql_max_connections"]
        assert of["postgresql_shared_buffers_mb"] <= of["postgresql_effective_cache_mb"]


@given(memories, cores, disks)
def test_equal_hosts_have_equal_namenodes(memory: int, processors: int, disk: int) -> None:
    hosts = (Host(name, memory, processors, frozenset({"namenode", "datanode"}), disk) for name in "ab")
    first, second = (of["hdfs_namenode_heap_mb"] for of in plan(Cluster(tuple(hosts))).sizes.values())
    assert first == second


@given(clusters())
def test_no_heap_is_in_the_range_that_holds_less(cluster: Cluster) -> None:
    for of in plan(cluster).sizes.values():
        names = [row.variables[0] for row in FIXED.values()] + ["spark_executor_memory_mb"]
        heaps = [of[name] for name in names] + [of["flink_taskmanager_task_heap_mb"] + 128]
        assert not any(MOST_COMPRESSED < heap < LEAST_WIDE for heap in heaps)
        assert of["spark_max_result_mb"] < of["spark_driver_memory_mb"]


@given(
    clusters(),
    st.sampled_from(["trino_heap_mb", "hive_metastore_heap_mb", "spark_worker_memory_mb"]),
    st.integers(1, 12),
)
@example(one(65536, 16, {"metastore", *OF_ENGINE["trino"]}), "trino_heap_mb", 11)
def test_the_users_value_wins_and_the_rest_still_sums_up(
    cluster: Cluster, variable: str, sixteenths: int
) -> None:
    first, *others = cluster.hosts
    size = max(1100, first.memory_mb * sixteenths // 16)
    cluster = replace(cluster, hosts=(replace(first, sizes={variable: size}), *others))
    assert plan(cluster).sizes[first.name][variable] == size
    sums_up(cluster)


@pytest.mark.longdrill
def test_all_of_it_is_true_of_thousands_of_machines_that_nobody_has_tried() -> None:
    each = ["-q", "-p", "no:cacheprovider", "-m", "not longdrill", "--hypothesis-profile=drill"]
    argv = [sys.executable, "-m", "pytest", *each, __file__]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
