"""From an inventory to the model and back: what roles take from it, and what validation says of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from lakehouse import run
from lakehouse.model import defaults, inventory, services
from lakehouse.model.inventory import Host
from lakehouse.sizing import Plan, placed, plan
from lakehouse.sizing.engines import ENGINES
from lakehouse.validation import sizes

DEFAULT = re.compile(r"^(\w+): \"\{\{ node_sizes\[inventory_hostname\]\.(\w+) \}\}\"$", re.MULTILINE)
OF_NODE1 = frozenset({
    "namenode", "datanodes", "postgresql", "metastore", "spark_master", "spark_workers", "spark_history",
    "trino_coordinator", "trino_workers", "flink_taskmanagers",
})  # fmt: skip


def machine(*groups: str, **variables: Any) -> placed.Machine:
    return placed.Machine(groups, variables, 16384, 4)


def host(**variables: Any) -> Host:
    return Host("n1", "10.0.0.11", OF_NODE1, variables)


def lines(findings: list[Any]) -> list[str]:
    return [str(finding) for finding in findings]


def test_every_default_of_a_role_is_a_size_of_that_name_and_may_be_set() -> None:
    made = plan(placed.cluster({"n1": machine()}, {})).sizes["n1"]
    found = [
        pair
        for file in run.ROOT.glob("roles/*/defaults/main.yml")
        for pair in DEFAULT.findall(file.read_text(encoding="utf-8"))
    ]
    assert {variable for variable, _ in found} == placed.VARIABLES
    assert all(variable == size for variable, size in found)
    assert made.keys() >= placed.VARIABLES


def test_every_service_with_memory_has_a_heap_or_is_an_engine() -> None:
    rows = services.load().services.values()
    assert {row.name for row in rows if not row.heap} == {row.service for row in ENGINES.values()} - {
        "spark_worker"
    }


def test_no_other_file_of_a_role_names_a_size_that_the_model_does_not_make() -> None:
    made = plan(placed.cluster({"n1": machine()}, {})).sizes["n1"]
    for file in run.ROOT.glob("roles/*/vars/main.yml"):
        text = file.read_text(encoding="utf-8")
        assert (
            set(re.findall(r"(?:node_sizes\[inventory_hostname\]|_spark_sizes)\.(\w+)", text)) <= made.keys()
        )


def test_services_are_those_of_the_groups() -> None:
    everything = machine("clients", "trino_coordinator", "flink_jobmanager", spark_connect_enabled=True)
    assert placed.services(everything, small=True) == {"spark_connect"}
    assert placed.services(everything, small=False) == {
        "spark_connect", "trino", "flink_jobmanager", "flink_sql_gateway", "flink_history",
    }  # fmt: skip


def test_a_machine_that_nobody_has_looked_at_counts_as_the_smallest() -> None:
    machines = {"n1": machine(), "n2": placed.Machine((), {})}
    assert [of.memory_mb for of in placed.cluster(machines, {}).hosts] == [16384, 16384]
    unknown = placed.cluster({"n2": placed.Machine((), {})}, {}).hosts[0]
    assert (unknown.memory_mb, unknown.cores) == (8192, 2)


def test_the_settings_of_the_cluster() -> None:
    said = {"lakehouse_memory_overcommit": 1.5, "lakehouse_engine_weights": {"trino": 1}}
    found = placed.cluster({"n1": machine("datanodes")}, said)
    assert (found.overcommit, found.replication) == (1.5, 1)
    assert found.weights == {"spark": 4, "trino": 1, "flink": 2}


def test_a_disk_is_that_of_the_file_system_below_a_folder() -> None:
    mounts = [
        {"mount": "/", "size_total": 50 * 10**9},
        {"mount": "/data", "size_total": 900 * 10**9},
        {"mount": "/data/2", "size_total": 700 * 10**9},
    ]
    assert placed.disk_gb(mounts, ["/data/1/hdfs", "/data/other", "/data/2"]) == 1600
    assert placed.disk_gb(mounts, ["/database"]) == 50
    assert placed.disk_gb([], ["/data"]) == 0


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        (
            {"lakehouse_memory_overcommit": 0.0},
            "lakehouse_memory_overcommit is 0.0 (expected more than 0, at most 2)",
        ),
        (
            {"lakehouse_memory_overcommit": 9},
            "lakehouse_memory_overcommit is 9 (expected more than 0, at most 2)",
        ),
        (
            {"lakehouse_engine_weights": {"spark": -1}},
            "lakehouse_engine_weights.spark is -1 (expected more than 0)",
        ),
    ],
)
def test_a_factor_out_of_its_range_is_refused(variables: dict[str, Any], named: str) -> None:
    assert lines(sizes.factors(host(**variables))) == [
        f"FAIL sizes.range n1: {named}: correct it, or leave it out: it has a default (docs/sizing.md)"
    ]


def test_a_host_that_holds_its_services_is_fine() -> None:
    assert sizes.room(host(node_memory_mb=8192, node_cores=4)) == []
    assert sizes.room(host()) == []
    # Another check names the one size.
    assert sizes.room(host(node_memory_mb=8192, hive_metastore_heap_mb=9000)) == []
    assert sizes.room(host(node_memory_mb=8192, hive_metastore_heap_mb=-5)) == []


def test_a_host_that_is_too_small_is_told_what_could_move() -> None:
    assert lines(sizes.room(host(node_memory_mb=5120, node_cores=2))) == [
        "FAIL sizes.room n1: its services take 5159 MiB at the least, 807 more than there are (expected at "
        "most 4352, 85 % of node_memory_mb x lakehouse_memory_overcommit): move one of trino (1536), "
        "flink_taskmanager (1024), spark_executors (615) to another host, lower what is set, or raise "
        "lakehouse_memory_overcommit"
    ]


def test_sizes_that_somebody_has_set_may_take_what_is_the_system_s() -> None:
    [found] = sizes.room(host(node_memory_mb=6144, node_cores=2, trino_heap_mb=2000))
    assert str(found).startswith("WARN sizes.room n1: its services take ")
    [found] = sizes.room(host(node_memory_mb=6144, node_cores=2, trino_heap_mb=5000))
    assert str(found).startswith("FAIL sizes.room n1: its services take ")


def test_promising_more_makes_room() -> None:
    assert sizes.room(host(node_memory_mb=5120, node_cores=2, lakehouse_memory_overcommit=1.2)) == []


EVERYTHING = ("datanodes", "spark_workers", "trino_workers", "flink_taskmanagers")


def cluster_of(first: dict[str, Any], *others: dict[str, Any]) -> inventory.Inventory:
    """Masters on the first host, every engine on each; memory, cores and disk are variables."""
    hosts = [
        inventory.Host(f"n{number}", "", frozenset(EVERYTHING if number else OF_NODE1), said)
        for number, said in enumerate((first, *others))
    ]
    return inventory.Inventory(Path(), tuple(hosts))


LARGE = {"node_memory_mb": 262144, "node_cores": 64, "node_disk_gb": 1000}
SMALL = {"node_memory_mb": 16384, "node_cores": 4, "node_disk_gb": 1000}


def test_a_worker_on_which_no_executor_fits_is_named() -> None:
    assert lines(sizes.uneven(cluster_of(LARGE, LARGE, LARGE, SMALL))) == [
        "WARN sizes.mixed n3: its worker of Spark has 4736 MiB, and no executor of the others fits (expected "
        "at least 7936): give it more memory, take it out of [spark_workers], or set spark_executor_memory_mb"
    ]
    assert sizes.uneven(cluster_of(LARGE, LARGE, LARGE)) == []
    assert sizes.uneven(cluster_of(LARGE, *[SMALL] * 12)) == []
    # Where the inventory does not say how large a machine is, its facts do, later.
    assert sizes.uneven(cluster_of(LARGE, LARGE, LARGE, {})) == []


def test_a_namenode_that_full_disks_would_outgrow_is_named() -> None:
    full = LARGE | {"node_disk_gb": 900_000}
    [line] = lines(sizes.uneven(cluster_of(full, full, full)))
    assert line.startswith(
        "WARN sizes.namenode n0: its NameNode has a heap of 10880 MiB, and the disks hold 13.4 million "
        "blocks (expected at least 16130): move engines to another host, or set hdfs_namenode_heap_mb before"
    )
    assert sizes.uneven(cluster_of(full | {"hdfs_namenode_heap_mb": 16200}, full, full)) == []


@pytest.mark.parametrize("inventory", ["inventory/local", "tests/inventory"])
def test_the_local_nodes_run_two_applications_and_two_tasks_of_flink(inventory: str) -> None:
    said = yaml.safe_load((run.ROOT / inventory / "group_vars/all/nodes.yml").read_text("utf-8"))
    one = placed.Machine(OF_NODE1, said, said["node_memory_mb"], said["node_cores"])
    made = plan(placed.cluster({"n1": one}, said))
    of = made.sizes["n1"]
    assert made.gaps == ()
    assert of["spark_worker_cores"] // of["spark_executor_cores"] >= 2
    assert of["flink_taskmanager_slots"] == 2


def planned(path: str, factor: float, *services: str) -> Plan:
    """What the model says of an inventory of local nodes with another overcommit, and these services too."""
    hosts = inventory.load(run.ROOT / path).hosts
    said = yaml.safe_load((run.ROOT / path / "group_vars/all/nodes.yml").read_text("utf-8"))
    variables = said | dict.fromkeys(services, True)
    machines = {
        of.name: placed.Machine(of.groups, variables, said["node_memory_mb"], said["node_cores"])
        for of in hosts
    }
    return plan(placed.cluster(machines, said | {sizes.FACTOR: factor}))


def test_the_overcommits_of_local_nodes_are_what_decision_0036_says() -> None:
    heaps = [
        {of["spark_executor_memory_mb"] for of in planned("inventory/local", factor).sizes.values()}
        for factor in (1.2, 1.25)
    ]
    assert heaps == [{624}, {736}]
    both = ("spark_connect_enabled", "spark_thrift_enabled")
    [gap] = planned("tests/inventory", 1.45, *both).gaps
    assert (gap.host, gap.missing_mb, sum(gap.services.values())) == ("alpha1", 115, 7687)
    assert planned("tests/inventory", 1.5, *both).gaps == ()


# Values that all hosts share and that follow from the memory of each, by the key that the page names.
SHARED = {"trino_query_max_memory_mb": "query.max-memory", "flink_parallelism": "parallelism.default"}


@pytest.mark.parametrize(("memory", "cores"), [(16384, 4), (32768, 8), (65536, 16), (262144, 64)])
@pytest.mark.parametrize("switch", ["spark_connect_enabled", "spark_thrift_enabled"])
def test_a_server_that_is_switched_on_resizes_what_the_page_says(
    memory: int, cores: int, switch: str
) -> None:
    hosts = inventory.load(run.ROOT / "inventory/three-node").hosts
    off, on = (
        plan(placed.cluster({of.name: placed.Machine(of.groups, said, memory, cores) for of in hosts}, {}))
        for said in ({}, {switch: True})
    )
    assert on.gaps == ()
    for of in hosts:
        assert sum(on.processes[of.name].values()) <= 0.85 * memory
        before, after = off.sizes[of.name], on.sizes[of.name]
        changed = {name for name, size in before.items() if after[name] != size}
        own = ("spark_", "trino_", "flink_") if "clients" in of.groups else ("spark_",)
        assert {name for name in changed if not name.startswith(own)} <= SHARED.keys()
    page = (run.ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = page.partition("A server that is switched on")[2].partition("\n\n")[0]
    assert [key for key in SHARED.values() if f"`{key}`" not in section] == []


@pytest.mark.parametrize(("cores", "options"), [(2, []), (4, ["2"]), (16, ["4"]), (64, ["8"]), (128, ["8"])])
def test_a_daemon_is_told_of_fewer_processors_where_there_are_more(cores: int, options: list[str]) -> None:
    cluster = placed.cluster({"n1": placed.Machine(OF_NODE1, {}, 262144, cores)}, {})
    known = {**defaults.role("node"), "inventory_hostname": "n1", "node_sizes": dict(plan(cluster).sizes)}
    found = Templar(loader=DataLoader(), variables=known).template(known["node_processors"])
    assert found == [f"-XX:ActiveProcessorCount={seen}" for seen in options]
