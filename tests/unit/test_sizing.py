"""The sizing model on machines that people have: numbers that were agreed on, and what the user sets."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from lakehouse.sizing import Cluster, Host, page, plan
from lakehouse.sizing.placements import (
    FLINK_MASTERS,
    MACHINES,
    METADATA,
    OF_ENGINE,
    WORKERS,
    Machine,
    colocated,
    host,
    separated,
)


class Agreed(NamedTuple):
    """What the fullest of three equal hosts has; all in MiB but cores, slots and counts."""

    overcommit: float
    # NameNode, DataNode, metastore, PostgreSQL's budget, Spark's master, worker and history server.
    heaps: tuple[int, ...]
    # Executors of a worker, cores of each, heap of each.
    spark: tuple[int, int, int]
    # Cores of all workers, those of one application, initial partitions.
    cluster: tuple[int, int, int]
    # Heap, memory of a query on a node, and in the cluster.
    trino: tuple[int, int, int]
    # Process and slots.
    flink: tuple[int, int]
    percent: float


# fmt: off
AGREED = {
    "6/2": Agreed(1.0, (256, 192, 384, 192, 192, 192, 192), (1, 1, 560), (3, 2, 32),
                  (1024, 400, 1200), (1024, 1), 84.9),
    "6/2 overcommitted": Agreed(1.2, (256, 192, 384, 192, 192, 192, 192), (2, 1, 704), (6, 3, 32),
                                (1024, 400, 1200), (1024, 1), 101.5),
    "16/4": Agreed(1.0, (672, 512, 1024, 512, 192, 336, 336), (2, 2, 1792), (12, 6, 48),
                   (2752, 1088, 3264), (2176, 2), 83.9),
    "64/16": Agreed(1.0, (1152, 2048, 4096, 2048, 672, 1024, 1344), (2, 4, 7808), (24, 12, 96),
                    (11968, 4736, 14208), (9344, 11), 84.8),
    "256/64": Agreed(1.0, (1792, 4096, 8192, 8192, 1024, 1024, 4096), (9, 4, 7872), (108, 96, 432),
                     (54272, 21504, 64512), (42496, 54), 84.6),
    "1024/128": Agreed(1.0, (2624, 4096, 8192, 8192, 1024, 1024, 4096), (32, 4, 9920), (384, 372, 1536),
                       (243456, 97280, 291840), (190976, 128), 84.8),
}
# fmt: on
BY_NAME = {f"{machine.memory_gib}/{machine.cores}": machine for machine in MACHINES}


@pytest.mark.parametrize("name", AGREED)
def test_three_equal_hosts_have_the_agreed_sizes(name: str) -> None:
    agreed, machine = AGREED[name], BY_NAME[name.split(maxsplit=1)[0]]
    hosts = tuple(host(machine, number, WORKERS | METADATA) for number in (1, 2, 3))
    made = plan(Cluster(hosts, overcommit=agreed.overcommit))
    of = made.sizes["n1"]
    count = of["spark_worker_cores"] // of["spark_executor_cores"]
    taken = sum(made.processes["n1"].values())
    assert of["spark_worker_memory_mb"] == count * of["spark_executor_memory_mb"]
    assert agreed == Agreed(
        overcommit=agreed.overcommit,
        heaps=(
            of["hdfs_namenode_heap_mb"],
            of["hdfs_datanode_heap_mb"],
            of["hive_metastore_heap_mb"],
            2 * of["postgresql_shared_buffers_mb"],
            of["spark_master_heap_mb"],
            of["spark_daemon_memory_mb"],
            of["spark_history_heap_mb"],
        ),
        spark=(count, of["spark_executor_cores"], of["spark_executor_memory_mb"]),
        cluster=(
            3 * of["spark_worker_cores"],
            of["spark_application_cores"],
            of["spark_shuffle_initial_partitions"],
        ),
        trino=(
            of["trino_heap_mb"],
            of["trino_query_max_memory_per_node_mb"],
            of["trino_query_max_memory_mb"],
        ),
        flink=(of["flink_taskmanager_memory_mb"], of["flink_taskmanager_slots"]),
        percent=round(100 * taken / (machine.memory_gib * 1024), 1),
    )


@pytest.mark.parametrize(
    ("machine", "spark", "trino", "flink", "masters"),
    [
        (0, (2, 1, 1920), (4160, 1664), (4928, 2), 3271),
        (1, (2, 2, 5376), (11328, 4480), (13312, 4), 4814),
        (2, (4, 4, 10880), (45312, 17920), (53248, 16), 14513),
        (3, (16, 4, 11264), (185344, 73984), (218112, 64), 39454),
        (4, (32, 4, 23040), (393216, 157184), (886528, 128), 40369),
    ],
)
def test_an_engine_alone_has_the_machine(
    machine: int, spark: tuple[int, ...], trino: tuple[int, ...], flink: tuple[int, ...], masters: int
) -> None:
    size = MACHINES[machine]

    def alone(engine: str) -> dict[str, int]:
        services = {"datanode", *OF_ENGINE[engine]}
        return dict(plan(Cluster((host(size, 1, services),))).sizes["n1"])

    of = alone("spark")
    count = of["spark_worker_cores"] // of["spark_executor_cores"]
    assert spark == (count, of["spark_executor_cores"], of["spark_executor_memory_mb"])
    of = alone("trino")
    assert trino == (of["trino_heap_mb"], of["trino_query_max_memory_per_node_mb"])
    of = alone("flink")
    assert flink == (of["flink_taskmanager_memory_mb"], of["flink_taskmanager_slots"])
    others = [host(size, number, {"datanode"}) for number in (2, 3, 4)]
    cluster = Cluster((host(size, 1, METADATA | FLINK_MASTERS), *others))
    assert masters == sum(plan(cluster).processes["n1"].values())


def one(*services: str, memory_mb: int = 65536, cores: int = 16, **sizes: int) -> Host:
    return Host("n1", memory_mb, cores, frozenset(services), sizes=sizes)


ENGINES = ("spark_worker", "trino", "trino_worker", "flink_taskmanager")


def test_a_weight_moves_memory_between_engines() -> None:
    analytics = plan(Cluster((one(*ENGINES),), weights={"spark": 1, "trino": 3, "flink": 1})).sizes["n1"]
    usual = plan(Cluster((one(*ENGINES),))).sizes["n1"]
    assert analytics["trino_heap_mb"] > usual["trino_heap_mb"]
    assert analytics["spark_worker_memory_mb"] < usual["spark_worker_memory_mb"]


def test_what_the_user_sets_is_taken_as_it_is_and_subtracted_first() -> None:
    usual, said = (plan(Cluster((one(*ENGINES, **sizes),))) for sizes in ({}, {"trino_heap_mb": 5000}))
    assert said.sizes["n1"]["trino_heap_mb"] == 5000
    assert said.sizes["n1"]["trino_query_max_memory_per_node_mb"] == 1984
    assert said.sizes["n1"]["spark_worker_memory_mb"] > usual.sizes["n1"]["spark_worker_memory_mb"]
    assert said.gaps == ()


def test_one_variable_sizes_every_daemon_of_spark() -> None:
    made = plan(Cluster((one("spark_master", "spark_history", spark_daemon_memory_mb=300),))).sizes["n1"]
    names = ("spark_master_heap_mb", "spark_daemon_memory_mb", "spark_history_heap_mb")
    assert [made[name] for name in names] == [300, 300, 300]


def test_a_worker_has_the_cores_that_an_executor_of_the_user_wants() -> None:
    sizes = {"spark_worker_memory_mb": 480, "spark_executor_memory_mb": 480, "spark_executor_cores": 2}
    made = plan(Cluster((one("spark_worker", memory_mb=3072, cores=2, **sizes),))).sizes["n1"]
    assert (made["spark_worker_cores"], made["spark_application_cores"]) == (2, 2)


def test_an_application_takes_one_of_two_executors_of_each_worker() -> None:
    made = plan(colocated(MACHINES[2], 3)).sizes["n1"]
    assert (3 * made["spark_worker_cores"], made["spark_application_cores"]) == (24, 12)
    two = {"spark_executor_cores": 2}
    hosts = tuple(replace(of, sizes=two) for of in colocated(MACHINES[2], 3).hosts)
    assert plan(Cluster(hosts)).sizes["n1"]["spark_application_cores"] == 20


def test_an_application_alone_takes_three_quarters_of_many_executors() -> None:
    made = plan(colocated(MACHINES[3], 3)).sizes["n1"]
    assert made["spark_application_cores"] >= 0.75 * 3 * made["spark_worker_cores"]


def test_what_does_not_fit_is_told_with_what_is_missing() -> None:
    (gap,) = plan(Cluster((one(*ENGINES, *METADATA, *FLINK_MASTERS, memory_mb=6144, cores=2),))).gaps
    assert (gap.host, gap.missing_mb) == ("n1", 673)
    assert gap.services["trino"] == 1536


def test_a_host_without_a_service_names_the_sizes_of_one_that_has_it() -> None:
    client = Host("n2", 2048, 1, frozenset())
    made = plan(Cluster((one(*ENGINES), client))).sizes
    assert made["n2"]["trino_heap_mb"] == made["n1"]["trino_heap_mb"]
    assert made["n2"]["flink_taskmanager_slots"] == made["n1"]["flink_taskmanager_slots"]


def test_a_heap_without_known_disks_follows_from_the_memory() -> None:
    assert (
        plan(Cluster((one("namenode", memory_mb=1024 * 1024),))).sizes["n1"]["hdfs_namenode_heap_mb"] == 16384
    )


def test_a_namenode_alone_has_its_host_but_for_a_checkpoint_as_large() -> None:
    made = plan(Cluster((one("namenode", memory_mb=8192),)))
    assert made.sizes["n1"]["hdfs_namenode_heap_mb"] == 3072
    assert 2 * made.processes["n1"]["namenode"] <= 0.85 * 8192
    beside = plan(Cluster((one("namenode", "datanode", memory_mb=8192),))).sizes["n1"]
    assert beside["hdfs_namenode_heap_mb"] == 336


def large_and(*others: Host) -> dict[str, int]:
    """What the sizes of three hosts of 256 GiB and 64 cores are beside others."""
    return dict(plan(Cluster((*colocated(MACHINES[3], 3).hosts, *others))).sizes["n2"])


@pytest.mark.parametrize(("memory_mb", "cores"), [(16384, 4), (6144, 2)])
def test_one_small_host_leaves_a_large_cluster_as_it_is(memory_mb: int, cores: int) -> None:
    small = Host("small", memory_mb, cores, frozenset({"datanode", *ENGINES}))
    before, after = large_and(), large_and(small)
    for name in ("spark_executor_cores", "spark_executor_memory_mb", "spark_application_cores"):
        assert after[name] == before[name]
    assert after["trino_query_max_memory_mb"] > before["trino_query_max_memory_mb"]


def test_many_small_hosts_have_executors_too() -> None:
    small = [Host(f"small{number}", 16384, 4, frozenset({"datanode", *ENGINES})) for number in range(30)]
    made = plan(Cluster((*colocated(MACHINES[3], 3).hosts, *small)))
    of = made.sizes["small1"]
    assert of["spark_worker_memory_mb"] >= of["spark_executor_memory_mb"]


def test_a_worker_on_which_no_executor_fits_has_its_share_and_no_more() -> None:
    small = Host("small", 6144, 2, frozenset({"datanode", *ENGINES}))
    made = plan(Cluster((*colocated(MACHINES[3], 3).hosts, small)))
    of = made.sizes["small"]
    assert of["spark_worker_memory_mb"] < of["spark_executor_memory_mb"]
    assert of["spark_worker_cores"] == 1
    assert made.gaps == ()


def test_a_coordinator_larger_than_its_workers_gives_a_query_no_more_than_the_cluster() -> None:
    hosts = (one("trino", memory_mb=262144), Host("w", 16384, 4, frozenset({"trino", "trino_worker"})))
    made = plan(Cluster(hosts)).sizes["n1"]
    assert made["trino_query_max_memory_per_node_mb"] == made["trino_query_max_memory_mb"] == 4672


@pytest.mark.parametrize(
    ("memory_gib", "nodes", "disk_gb", "need"),
    [(64, 50, 48000, 14183), (64, 50, 8000, 3217), (256, 50, 48000, 14183)],
)
def test_a_namenode_without_an_engine_beside_it_has_what_its_blocks_need(
    memory_gib: int, nodes: int, disk_gb: int, need: int
) -> None:
    others = [
        host(MACHINES[2]._replace(disk_gb=disk_gb), number, {"datanode"}) for number in range(2, nodes + 1)
    ]
    masters = Host("n1", memory_gib * 1024, 16, METADATA | FLINK_MASTERS)
    made = plan(Cluster((masters, *others)))
    assert need * 0.98 <= made.sizes["n1"]["hdfs_namenode_heap_mb"] <= need
    # The checkpoint reads the namespace into a heap as large.
    taken = sum(made.processes["n1"].values()) + made.processes["n1"]["namenode"]
    assert taken <= 0.85 * memory_gib * 1024


@pytest.mark.parametrize(
    ("machine", "nodes", "seconds"),
    [
        (MACHINES[0], 3, 60),
        (MACHINES[2], 3, 120),
        (MACHINES[2], 10, 240),
        (MACHINES[3], 50, 7680),
        (MACHINES[4], 50, 15360),
    ],
)
def test_the_more_replicas_the_disks_hold_the_rarer_are_full_reports(
    machine: Machine, nodes: int, seconds: int
) -> None:
    made = plan(colocated(machine, nodes)).sizes
    assert {of["hdfs_datanode_block_report_seconds"] for of in made.values()} == {seconds}
    replicas = nodes * machine.disk_gb * 1e9 / 2**26
    assert replicas / seconds <= 5000 or seconds == 21600
    assert plan(Cluster((one("datanode"),))).sizes["n1"]["hdfs_datanode_block_report_seconds"] == 60


def test_a_namenode_alone_has_no_more_than_its_blocks_need() -> None:
    others = [host(MACHINES[2], number, {"datanode"}) for number in (2, 3, 4)]
    made = plan(Cluster((one("namenode"), *others))).sizes["n1"]
    assert made["hdfs_namenode_heap_mb"] == 1152


@pytest.mark.parametrize(("nodes", "handlers"), [(1, 10), (3, 21), (50, 78)])
def test_handlers_grow_with_the_nodes(nodes: int, handlers: int) -> None:
    made = plan(colocated(MACHINES[1], max(nodes, 1))) if nodes > 1 else plan(Cluster((one("datanode"),)))
    assert made.sizes["n1"]["hdfs_namenode_handlers"] == handlers


def test_engines_get_nodes_by_their_weights() -> None:
    cluster = separated(MACHINES[0], 10)
    counts = [len(cluster.having(service)) for service in ("spark_worker", "trino", "flink_taskmanager")]
    assert counts == [4, 3, 2]


def test_memory_that_few_executors_could_not_hold_makes_them_more() -> None:
    made = plan(Cluster((one("datanode", "spark_worker", memory_mb=262144, cores=8),)))
    of = made.sizes["n1"]
    assert (of["spark_executor_cores"], of["spark_worker_cores"]) == (1, 8)
    assert sum(made.processes["n1"].values()) >= 0.8 * 262144


def test_an_executor_has_four_cores_where_a_worker_has_two_of_them() -> None:
    made = plan(colocated(MACHINES[2], 50)).sizes
    assert {of["spark_executor_cores"] for of in made.values()} == {4}


def test_the_page_is_what_the_model_says() -> None:
    for path, text in page.pages().items():
        assert path.read_text(encoding="utf-8") == text, "next: make docs"
