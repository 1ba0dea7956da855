"""PostgreSQL lets its own clients in alone, and serves the metastore's pools, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakehouse.model.inventory import Host, Inventory
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


def one(**settings: Any) -> list[str]:
    """Return what is found of one host's clients and settings."""
    host = Host("n1", "10.0.0.11", frozenset(), settings)
    return list(map(str, postgresql.clients(host) + postgresql.settings(host)))


@pytest.mark.parametrize(
    "client",
    ["10.0.0.0/8", "192.168.1.7/32", "172.28.0.0/16", "100.64.3.0/24", "fd12::/48", "::1/128", "samenet"],
)
def test_clients_of_a_private_network(client: str) -> None:
    assert one(postgresql_clients=[client], postgresql_federation_clients=[client]) == []


@pytest.mark.parametrize("variable", postgresql.CLIENTS)
@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("0.0.0.0/0", "a private network"),
        ("::/0", "a private network"),
        ("0.0.0.0/1", "a private network"),
        ("10.0.0.0/7", "a private network"),
        ("172.0.0.0/8", "a private network"),
        ("93.184.215.0/24", "a private network"),
        ("2001:db8::/32", "a private network"),
        ("all", "a network"),
        ("10.0.0.5", "a network"),
        ("10.0.0.5/8", "a network"),
        ("10.0.0.0/8\nhost all all 0.0.0.0/0 trust", "a network"),
        ("10.0.0.0/8 trust #", "a network"),
        ("fe80::%x trust/64", "a network"),
    ],
)
def test_clients_that_are_strangers(variable: str, client: str, expected: str) -> None:
    (line,) = one(**{variable: [client]})
    assert line.startswith(f"FAIL postgresql.clients n1: {variable}[0] is {client!r} (expected {expected}): ")
    assert "\n" not in line


def test_a_public_network_behind_a_firewall() -> None:
    guarded = {"lakehouse_public_network_is_firewalled": True}
    assert one(postgresql_clients=["93.184.215.0/24"], **guarded) == []
    assert len(one(postgresql_clients=["0.0.0.0/0", "::/0", "10.0.0.0/7"], **guarded)) == 3


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("hba_file", "/etc/open.conf", "set postgresql_clients"),
        ("HBA_FILE", "/etc/open.conf", "set postgresql_clients"),
        ("ident_file", "/etc/open.conf", "the role writes pg_ident.conf"),
        ("include_dir", "more.d", "set its settings themselves"),
        ("listen_addresses", "*", "set postgresql_listen_addresses"),
        ("ssl", False, "set postgresql_tls: false"),
        ("ssl", "OFF", "set postgresql_tls: false"),
        ("ssl", "n", "set postgresql_tls: false"),
        ("ssl", 0, "set postgresql_tls: false"),
        ("password_encryption", "md5", "pg_hba.conf wants SCRAM"),
    ],
)
def test_a_setting_that_undoes_the_roles(name: str, value: object, advice: str) -> None:
    (line,) = one(postgresql_settings={name: value})
    assert line.startswith(f"FAIL postgresql.settings n1: postgresql_settings has {name.lower()} ")
    assert advice in line


@pytest.mark.parametrize(
    "settings",
    [
        {"ssl": True, "ssl_min_protocol_version": "TLSv1.3", "password_encryption": "scram-sha-256"},
        {"ssl": "on", "max_connections": 50, "hba_file": None},
    ],
)
def test_settings_that_leave_it_as_it_is(settings: dict[str, Any]) -> None:
    assert one(postgresql_settings=settings) == []
    assert one(postgresql_settings={"ssl": False}, postgresql_tls=False) == []


def test_a_server_on_every_address_is_a_warning_but_in_a_container() -> None:
    everywhere: dict[str, Any] = {"postgresql_listen_addresses": ["*"]}
    (line,) = one(**everywhere)
    assert line.startswith("WARN postgresql.listen n1: postgresql_listen_addresses has every address")
    assert one(**everywhere, lakehouse_target="compose") == []
