"""A pool of the metastore that PostgreSQL cannot serve is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse.inventory import Host, Inventory
from lakehouse.validation import postgresql


def an_inventory(**hosts: dict[str, Any]) -> Inventory:
    """Put the metastore on the first host and PostgreSQL on the last, which may be the same."""
    groups = {name: set[str]() for name in hosts}
    groups[next(iter(hosts))].add("metastore")
    groups[list(hosts)[-1]].add("postgresql")
    return Inventory(
        Path(), tuple(Host(name, "10.0.0.11", frozenset(groups[name]), said) for name, said in hosts.items())
    )


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"hive_metastore_pool_size": 22},
        {"hive_metastore_pool_size": 25, "postgresql_max_connections": 110},
        {"postgresql_max_connections": 50},
        {"postgresql_max_connections": 20, "postgresql_settings": {"max_connections": 50}},
    ],
)
def test_pools_that_leave_connections_for_others(settings: dict[str, Any]) -> None:
    assert postgresql.connections(an_inventory(n1=settings)) == []


def test_pools_that_take_all_connections() -> None:
    said = {"hive_metastore_pool_size": 25, "postgresql_max_connections": 100}
    assert [str(finding) for finding in postgresql.connections(an_inventory(n1=said))] == [
        "FAIL postgresql.connections n1: the metastore holds 4 x 25 connections "
        "(hive_metastore_pool_size), and PostgreSQL allows 100 in all (expected at least 110): "
        "raise postgresql_max_connections, or lower hive_metastore_pool_size"
    ]


def test_connections_that_nobody_has_set_follow_the_pools() -> None:
    assert postgresql.connections(an_inventory(n1={"hive_metastore_pool_size": 25})) == []


def test_pools_are_those_of_the_metastores_host() -> None:
    apart = an_inventory(n1={"node_cores": 64}, n2={"node_cores": 2, "postgresql_max_connections": 80})
    [finding] = postgresql.connections(apart)
    assert str(finding).startswith("FAIL postgresql.connections n2: the metastore holds 4 x 20 connections")
    small = an_inventory(n1={"node_cores": 2}, n2={"node_cores": 64, "postgresql_max_connections": 80})
    assert postgresql.connections(small) == []


def test_a_size_that_is_none_is_named_by_another_check() -> None:
    assert postgresql.connections(an_inventory(n1={"hive_metastore_pool_size": -5})) == []
