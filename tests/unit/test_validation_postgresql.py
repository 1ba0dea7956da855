"""A pool of the metastore that PostgreSQL cannot serve is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.inventory import Host
from lakehouse.validation import postgresql


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
    assert postgresql.connections(Host("n1", "10.0.0.11", frozenset(), settings)) == []


def test_pools_that_take_all_connections() -> None:
    said = {"hive_metastore_pool_size": 25, "postgresql_max_connections": 100}
    host = Host("n1", "10.0.0.11", frozenset(), said)
    assert [str(finding) for finding in postgresql.connections(host)] == [
        "FAIL postgresql.connections n1: the metastore holds 4 x 25 connections "
        "(hive_metastore_pool_size), and PostgreSQL allows 100 in all (expected at least 110): "
        "raise postgresql_max_connections, or lower hive_metastore_pool_size"
    ]


def test_connections_that_nobody_has_set_follow_the_pools() -> None:
    host = Host("n1", "10.0.0.11", frozenset(), {"hive_metastore_pool_size": 25})
    assert postgresql.connections(host) == []
