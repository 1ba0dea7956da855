"""What is wrong with Flink in an inventory is said in a line one can act on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation import Finding, flink


def a_host(name: str = "n1", /, *groups: str, **settings: Any) -> Host:
    return Host(name, "10.0.0.11", frozenset(groups), settings)


def an_inventory(*hosts: Host) -> Inventory:
    return Inventory(Path(), hosts)


def lines(findings: list[Finding]) -> str:
    return "\n".join(map(str, findings))


@pytest.mark.parametrize(
    ("hosts", "line"),
    [
        ((a_host("n1"),), ""),
        ((a_host("n1", flink.LEADER, flink.WORKERS), a_host("n2", flink.WORKERS)), ""),
        (
            (a_host("n1", flink.WORKERS),),
            "FAIL groups.flink all: group flink_jobmanager is empty, and flink_taskmanagers is not (expected "
            "exactly one host, or none in both groups): put a host into [flink_jobmanager]",
        ),
        (
            (a_host("n1", flink.LEADER),),
            "FAIL groups.flink all: group flink_taskmanagers is empty, and flink_jobmanager is not (expected "
            "at least one host): put a host into [flink_taskmanagers]",
        ),
    ],
)
def test_groups(hosts: tuple[Host, ...], line: str) -> None:
    assert lines(flink.groups(an_inventory(*hosts))) == line


@pytest.mark.parametrize("memory", [2048, 4096, 6144, 65536, 1_000_000])
def test_the_default_sizes_fit_into_each_other(memory: int) -> None:
    assert flink.memory(a_host(node_memory_mb=memory)) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"flink_taskmanager_memory_mb": 700},
        {"node_memory_mb": 6144, "flink_taskmanager_managed_mb": 5000},
        {"node_memory_mb": 6144, "flink_taskmanager_network_mb": 5000},
    ],
)
def test_parts_larger_than_the_process(settings: dict[str, Any]) -> None:
    found = lines(flink.memory(a_host(**settings)))
    assert "FAIL flink.memory n1: flink_taskmanager_memory_mb is " in found
    assert "raise it, or lower flink_taskmanager_managed_mb or flink_taskmanager_network_mb" in found


@pytest.mark.parametrize(("wanted", "count"), [(1, 0), (4, 0), (5, 1)])
def test_a_job_finds_its_slots(wanted: int, count: int) -> None:
    hosts = [a_host(name, flink.WORKERS, node_cores=2, flink_parallelism=wanted) for name in ("n1", "n2")]
    found = flink.parallelism(hosts[0], an_inventory(*hosts))
    assert len(found) == count
    assert all("with 2 TaskManagers of 2 slots (expected at most 4)" in str(one) for one in found)


def test_memory_is_not_sized_behind_the_roles_back() -> None:
    host = a_host(flink_config={"taskmanager.memory.process.size": "4g"})
    assert lines(flink.config(host)) == (
        "FAIL flink.config n1: flink_config has 'taskmanager.memory.process.size' (expected memory in its "
        "own variables): remove it and set flink_taskmanager_memory_mb or flink_jobmanager_heap_mb"
    )
