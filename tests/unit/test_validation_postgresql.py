"""A pool of the metastore that PostgreSQL cannot serve is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse.inventory import Host
from lakehouse.validation import postgresql

ROLES = Path(__file__).parents[2] / "roles"


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
    host = Host("n1", "10.0.0.11", frozenset(), {"hive_metastore_pool_size": 25})
    assert [str(finding) for finding in postgresql.connections(host)] == [
        "FAIL postgresql.connections n1: the metastore holds 4 x 25 connections "
        "(hive_metastore_pool_size), and PostgreSQL allows 100 in all (expected at least 110): "
        "raise postgresql_max_connections, or lower hive_metastore_pool_size"
    ]


@pytest.mark.parametrize(
    ("role", "name", "assumed"),
    [
        ("hive_metastore", "hive_metastore_pool_size", postgresql.POOL_SIZE),
        ("postgresql", "postgresql_max_connections", postgresql.MAX_CONNECTIONS),
    ],
)
def test_what_is_assumed_is_the_role_s_default(role: str, name: str, assumed: int) -> None:
    assert yaml.safe_load((ROLES / role / "defaults/main.yml").read_text("utf-8"))[name] == assumed
