"""A size with which a component does not start, or that its host does not have, is named."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse import run, yamlfile
from lakehouse.model import services
from lakehouse.model.inventory import Host
from lakehouse.sizing.fixed import FIXED
from lakehouse.validation import Finding, limits, sizes

EVERYTHING = frozenset(services.load().groups)
OF_COMPOSE = yamlfile.read(run.ROOT / "inventory/compose/group_vars/all/sizes.yml")


def a_host(*groups: str, **settings: Any) -> Host:
    return Host("n1", "10.0.0.11", frozenset(groups or EVERYTHING), settings)


def lines(findings: list[Finding]) -> list[str]:
    return list(map(str, findings))


@pytest.mark.parametrize("name", sorted(limits.LEAST))
def test_less_than_a_component_starts_with(name: str) -> None:
    least = limits.LEAST[name].mb
    [line] = lines(limits.least(a_host(**{name: least - 1})))
    assert line.startswith(
        f"FAIL sizes.least n1: {name} is {least - 1} (expected at least {least}): raise it, or "
    )
    assert limits.least(a_host(**{name: least})) == []
    # Zero and less are named by another check, once.
    assert limits.least(a_host(**{name: 0})) == []


def test_the_stack_runs_with_the_least_sizes() -> None:
    assert limits.least(a_host(**OF_COMPOSE)) == []
    heaps = [name for name in limits.LEAST if "heap" in name and name in OF_COMPOSE]
    assert {name: limits.LEAST[name].mb for name in heaps} == {name: OF_COMPOSE[name] for name in heaps}


def test_the_model_gives_no_service_less_than_that() -> None:
    least = {row.variables[0]: row.least // row.unit for row in FIXED.values()}
    assert all(least[name] >= limits.LEAST[name].mb for name in least.keys() & limits.LEAST.keys())


@pytest.mark.parametrize(
    "name", sorted(limits.variables(Host("n1", "", EVERYTHING, {})) - {"postgresql_effective_cache_mb"})
)
def test_a_size_larger_than_its_host(name: str) -> None:
    host = a_host(node_memory_mb=8192, **{name: 9000})
    assert lines(limits.more_than_host(host)) == [
        f"FAIL sizes.host n1: {name} is 9000, and node_memory_mb is 8192 (expected at most 8192): lower it, "
        "or leave it out: then it follows from the memory"
    ]
    # One fault is one line.
    assert sizes.room(host) == sizes.executors(host) == []
    assert limits.more_than_host(a_host(**{name: 9000})) == []


def test_a_size_of_a_service_that_is_elsewhere_is_no_fault_of_a_small_host() -> None:
    assert limits.more_than_host(a_host("datanodes", node_memory_mb=8192, trino_heap_mb=90_000)) == []


def test_more_cores_than_the_host_has() -> None:
    [line] = lines(limits.more_than_host(a_host(node_cores=64, spark_worker_cores=256)))
    assert line.startswith(
        "WARN sizes.host n1: spark_worker_cores is 256, and node_cores is 64 (expected at most 64)"
    )


def test_an_executor_that_fits_on_no_worker() -> None:
    said = {
        "node_memory_mb": 65536,
        "node_cores": 8,
        "spark_worker_memory_mb": 4000,
        "spark_executor_memory_mb": 5000,
    }
    assert lines(sizes.executors(a_host(**said))) == [
        "FAIL sizes.executor n1: spark_executor_memory_mb is 5000, and a worker has 4000 "
        "(spark_worker_memory_mb) (expected at most 4000): lower it, or raise spark_worker_memory_mb: "
        "no application would start"
    ]
    assert sizes.executors(a_host(**said | {"spark_executor_memory_mb": 2000})) == []
    assert sizes.executors(a_host(node_memory_mb=65536, node_cores=8, spark_executor_memory_mb=5000)) == []
