"""Hosts, ports and URIs of services, derived from the catalogue and an inventory, for Python and Ansible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from lakehouse.errors import LakehouseError
from lakehouse.model import endpoints, inventory, placement, services
from lakehouse.model.inventory import Host, Inventory
from plugins.filter import endpoints as filters

PORTS = services.load().tables["lakehouse_ports"]
MEMBERS = {"a": "192.0.2.1", "b": "192.0.2.2"}


def template(text: str, **groups: list[str]) -> Any:
    """Evaluate a template on host b, which has the kit's filters."""
    variables = {
        "groups": groups,
        "hostvars": {name: {"ansible_host": address} for name, address in MEMBERS.items()},
        "inventory_hostname": "b",
        "lakehouse_ports": PORTS,
    }
    return Templar(loader=DataLoader(), variables=variables).template(trust_as_template(text))


def an_inventory(**groups: list[str]) -> Inventory:
    """Make an inventory of two hosts with these groups."""
    hosts = tuple(
        Host(
            name,
            address,
            frozenset(group for group, members in groups.items() if name in members),
            {"lakehouse_ports": PORTS},
        )
        for name, address in MEMBERS.items()
    )
    return Inventory(Path("inventory/pair"), hosts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ 'metastore' | uris | join(',') }}", "thrift://b:9083"),
        ("{{ 'namenode_http' | uri }}", "http://a:9870"),
        ("{{ 'namenode_http' | uri(at='ansible_host') }}", "http://192.0.2.1:9870"),
        ("{{ 'datanode_http' | uri(inventory_hostname, at='ansible_host') }}", "http://192.0.2.2:9864"),
        ("{{ 'datanode_http' | uris | join(' ') }}", "http://a:9864 http://b:9864"),
        ("{{ 'postgresql' | uri }}", "jdbc:postgresql://b:5432"),
        ("{{ 'spark_connect' | uri }}", "sc://a:15002"),
        ("{{ 'trino' | active_host }}", "a"),
        ("{{ 'flink_rest' | uris | length }}", 0),
    ],
)
def test_a_template_names_a_listener_and_gets_its_uri(text: str, value: object) -> None:
    groups = {
        "namenode": ["a"],
        "datanodes": ["a", "b"],
        "metastore": ["b"],
        "postgresql": ["b"],
        "clients": ["a", "b"],
        # Clients reach the coordinator, which is the first group.
        "trino_workers": ["b"],
        "trino_coordinator": ["a"],
    }
    assert template(text, **groups) == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "{{ 'metastroe' | uris }}",
            "services.yml has no listener metastroe (did you mean metastore?); next: use a listener",
        ),
        (
            "{{ 'flink' | active_host }}",
            "services.yml has no service flink; next: use a service of",
        ),
        (
            "{{ 'metastore' | uri }}",
            "no host of the inventory runs metastore; next: add one to group",
        ),
        (
            "{{ 'datanode_http' | uri('a', at='fqdn') }}",
            "no fqdn of host a for the URI of datanode_http; set it in the inventory",
        ),
        ("{{ 'datanode_data' | uri('a') }}", "listener datanode_data has no URI: its protocol is tcp"),
    ],
)
def test_a_template_that_cannot_have_a_uri_says_why(text: str, fault: str) -> None:
    with pytest.raises(AnsibleError) as refused:
        template(text)
    assert fault in str(refused.value)


def test_python_and_ansible_derive_the_same_uri() -> None:
    groups = {"metastore": ["a"], "namenode": ["b"], "trino_coordinator": ["b"], "clients": ["a"]}
    found = an_inventory(**groups)
    for name in ("metastore", "namenode_http", "trino_http", "spark_thrift"):
        endpoint = endpoints.endpoint(name, found)
        assert endpoint.uri == template(f"{{{{ '{name}' | uri(at='ansible_host') }}}}", **groups)
        assert endpoint.place == (endpoint.address, PORTS[name])


def test_an_inventory_without_a_host_for_a_service_is_named() -> None:
    with pytest.raises(LakehouseError, match=r"no host of inventory/pair runs postgresql; next: add one"):
        endpoints.active("postgresql", an_inventory())


def test_a_misspelt_listener_has_a_suggestion() -> None:
    with pytest.raises(LakehouseError, match=r"no listener namenode_htp \(did you mean namenode_http"):
        endpoints.endpoint("namenode_htp", an_inventory(namenode=["a"]))


def test_a_service_that_no_host_runs_has_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_PROFILE", "core")
    cluster = placement.read(inventory.load("inventory/local"))
    assert (cluster.endpoints("trino_http"), cluster.endpoint("trino_http")) == ((), None)
    # It is switched off.
    assert cluster.endpoints("spark_thrift") == ()
    with pytest.raises(LakehouseError, match="inventory/local runs trino; next: add one"):
        cluster.active("trino")


def test_an_endpoint_under_tls_is_reached_by_https(monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = services.load()
    trino = catalogue.services["trino"]
    secure = replace(trino, listeners=tuple(replace(one, tls=True) for one in trino.listeners))
    changed = replace(catalogue, services={**catalogue.services, "trino": secure})
    monkeypatch.setattr(services, "load", lambda: changed)
    endpoint = endpoints.endpoint("trino_http", an_inventory(trino_coordinator=["a"]))
    assert (endpoint.scheme, endpoint.uri) == ("https", "https://192.0.2.1:8090")


def test_each_listener_with_a_host_is_an_endpoint_where_clients_find_it() -> None:
    members = {"namenode": ["b"], "clients": ["b", "a"], "trino_workers": ["a"]}
    found = filters.endpoints_of(members, MEMBERS, PORTS | {"namenode_http": "50070"})
    assert found["namenode_http"] == {
        "host": "b",
        "address": "192.0.2.2",
        "port": 50070,
        "uri": "http://192.0.2.2:50070",
        "internal_uri": "http://b:50070",
    }
    assert found["spark_connect"]["uri"] == "sc://192.0.2.2:15002"
    # No host has a coordinator.
    rows = services.load().services
    assert found.keys() == {
        listener.name
        for service in ("namenode", "spark_thrift", "spark_connect")
        for listener in rows[service].listeners
    }


def test_a_listener_of_tcp_has_no_uri_among_endpoints() -> None:
    assert filters.endpoints_of({"datanodes": ["a"]}, MEMBERS, PORTS)["datanode_data"] == {
        "host": "a",
        "address": "192.0.2.1",
        "port": 9866,
    }


def test_a_service_that_answers_http_has_a_section_where_it_has_a_host() -> None:
    raw = {"services": {"echo": {"http": "echo_http"}, "away": {"http": "away_http"}, "mute": {}}}
    found = {"echo_http": {"host": "n1", "uri": "http://10.0.0.1:7007"}}
    assert filters.http_sections(raw, found) == {
        "echo": {"host": "n1", "http": "http://10.0.0.1:7007"},
        "away": None,
    }


def scrape_configs(**variables: object) -> dict[str, Any]:
    """Return the jobs by name."""
    text = "{{ {'namenode': {'basic_auth': {'username': 'x'}}} | scrape_configs }}"
    return {job["job_name"]: job for job in monitored(text, **variables)}


def monitored(text: str, **variables: object) -> Any:
    """Evaluate a template of a cluster whose host b is monitored by a."""
    groups = {"namenode": ["b"], "monitoring": ["a"], "trino_coordinator": ["b"], "postgresql": ["a"]}
    everything = {
        "groups": {**groups, "all": list(MEMBERS)},
        "hostvars": {
            name: {
                "ansible_host": address,
                "group_names": [group for group, members in groups.items() if name in members],
            }
            for name, address in MEMBERS.items()
        },
        "lakehouse_ports": PORTS,
        "lakehouse_profile": "full",
        "lakehouse_monitoring_enabled": True,
        "lakehouse_users": {},
        "inventory_hostname": "a",
        "postgresql_tls": True,
        **variables,
    }
    return Templar(loader=DataLoader(), variables=everything).template(trust_as_template(text))


def test_prometheus_asks_each_service_that_serves_metrics_on_each_of_its_hosts() -> None:
    jobs = scrape_configs()
    assert set(jobs) >= {
        *("namenode", "trino", "node_exporter", "postgres_exporter", "prometheus", "alertmanager"),
        "probe_exporter",
    }
    assert jobs["namenode"] == {
        "job_name": "namenode",
        "scheme": "http",
        "metrics_path": "/prom",
        "static_configs": [{"targets": ["192.0.2.2:9870"], "labels": {"host": "b"}}],
        "basic_auth": {"username": "x"},
    }
    assert [target["labels"]["host"] for target in jobs["node_exporter"]["static_configs"]] == ["a", "b"]


def test_prometheus_asks_no_service_that_is_switched_off_or_of_another_profile() -> None:
    small, off = scrape_configs(lakehouse_profile="core"), scrape_configs(lakehouse_monitoring_enabled=False)
    assert ("namenode" in small, "trino" in small, "prometheus" in small) == (True, False, True)
    assert ("namenode" in off, "trino" in off, "prometheus" in off) == (True, True, False)


def test_services_are_asked_what_needs_no_account_of_their_host() -> None:
    """PostgreSQL has an exporter of its own, and a query would be in the history of Trino."""
    targets = {
        (target["job"], target["host"]): target for target in monitored("{{ groups['all'] | probe_targets }}")
    }
    assert set(targets) == {
        *(
            ("namenode", "b"),
            ("trino", "b"),
            ("postgresql", "a"),
            ("node_exporter", "a"),
            ("node_exporter", "b"),
        ),
        *((name, "a") for name in ("postgres_exporter", "prometheus", "alertmanager", "probe_exporter")),
    }
    # The second question is whether it is in safe mode.
    assert [probe["url"].rpartition("=")[2] for probe in targets["namenode", "b"]["probes"]] == [
        *("NameNodeStatus", "NameNodeInfo")
    ]
    assert {probe["kind"] for probe in targets["trino", "b"]["probes"]} == {"http"}
    assert targets["postgresql", "a"]["probes"] == []
    place = {"protocol": "postgresql", "host": MEMBERS["a"], "port": PORTS["postgresql"]}
    assert targets["postgresql", "a"]["certificate"] == place
