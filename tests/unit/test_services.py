"""The catalogue of services: what its rows may say, and what the filters make of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakehouse import verbs
from lakehouse.errors import LakehouseError
from lakehouse.model import services
from lakehouse.run import ROOT
from lakehouse.sql.engines import ENGINES
from plugins.filter import services as filters

RAW: dict[str, Any] = yaml.safe_load(services.FILE.read_text(encoding="utf-8"))[services.KEY]
LISTENER = {"port": 7, "protocol": "http", "description": "Echo."}
GROUPS = {
    "trino_coordinator": ["n1"],
    "trino_workers": ["n1", "n2"],
    "flink_jobmanager": [],
    "flink_taskmanagers": ["n2"],
}


def written(folder: Path, **changes: dict[str, Any]) -> Path:
    """Write a catalogue of one service, with some keys of its rows changed; None removes one."""
    rows: dict[str, dict[str, Any]] = {
        "users": {"account": "echo", "description": "User of echo."},
        "groups": {"hosts": "one", "profile": "core", "band": "compute", "label": "Echo"},
        "services": {
            "groups": ["echo"],
            "role": "echo",
            "unit": "echo",
            "user": "echo",
            "listeners": {"echo": LISTENER},
            "ready": [{"kind": "http", "port": "echo"}],
        },
    }
    content = {
        section: {
            "echo": {
                key: value for key, value in (row | changes.get(section, {})).items() if value is not None
            }
        }
        for section, row in rows.items()
    }
    path = folder / "services.yml"
    path.write_text(yaml.safe_dump({services.KEY: content}), encoding="utf-8")
    return path


def test_every_role_of_a_service_exists() -> None:
    roles = {service.role for service in services.load().services.values()}
    assert not [role for role in roles if not (ROOT / "roles" / role).is_dir()]


def test_every_release_is_a_component_that_an_engine_proves() -> None:
    catalogue = services.load()
    bill = verbs.bill().components
    assert catalogue.releases.keys() <= bill.keys()
    assert {row.release for row in catalogue.services.values()} - {None} == catalogue.releases.keys()
    assert {release.proof for release in catalogue.releases.values()} <= ENGINES.keys()


def test_the_timers_are_those_that_roles_make() -> None:
    written = "".join(path.read_text("utf-8") for path in (ROOT / "roles").glob("*/vars/main.yml"))
    assert set(RAW["timers"]) == set(re.findall(r"timer_files\('([\w-]+)'", written))


def test_the_engines_are_what_the_small_profile_leaves_out() -> None:
    assert services.load().engines == ("trino", "flink")


def test_tables_and_options_name_the_same_keys() -> None:
    catalogue = services.load()
    assert catalogue.tables["lakehouse_ports"]["trino_http"] == 8090
    assert {name: list(table) for name, table in catalogue.tables.items()} == {
        name: list(options) for name, options in catalogue.options.items()
    }


@pytest.mark.parametrize(
    ("section", "change", "fault"),
    [
        ("services", {"groups": ["ekho"]}, "service echo: each of its groups stands under groups"),
        ("services", {"groups": []}, "service echo: each of its groups stands under groups"),
        ("services", {"user": "ekho"}, "service echo: its user ekho stands under users"),
        ("services", {"http": "echo_http"}, "service echo: http names one of its listeners"),
        ("services", {"prots": {}}, "service echo: got an unexpected keyword argument 'prots'"),
        ("services", {"role": None}, "service echo: missing 1 required positional argument: 'role'"),
        ("services", {"heap": {"divisor": 9, "least": 9}}, "service echo: heap: missing 1 required"),
        (
            "services",
            {"heap": {"divisor": 9, "least": 64, "most": 128}},
            "service echo: the variable of its heap is the first of memory",
        ),
        (
            "services",
            {"memory": ["echo_heap_mb"], "heap": {"divisor": 9, "least": 128, "most": 64}},
            "service echo: its heap is from least to most MiB",
        ),
        (
            "services",
            {"memory": ["echo_heap_mb"], "heap": {"divisor": 0, "least": 64, "most": 64}},
            "service echo: divisor and unit of its heap are 1 or more",
        ),
        ("services", {"ready": None}, "service echo: ready names what it answers once it serves"),
        ("services", {"ready": [{"port": "echo"}]}, "service echo: ready: missing 1 required"),
        (
            "services",
            {"ready": [{"kind": "html", "port": "echo"}]},
            f"service echo: a question is of the kind {', '.join(services.KINDS)}, not html",
        ),
        (
            "services",
            {"ready": [{"kind": "http", "port": "echo", "asked": "later"}]},
            "service echo: a question is asked alone or joined, not later",
        ),
        (
            "services",
            {"ready": [{"kind": "http", "port": "echo", "asked": "joined"}]},
            "service echo: ready has a question that is not asked joined",
        ),
        (
            "services",
            {"settled": [{"kind": "http", "port": "ekho"}]},
            "service echo: no service has the listener ekho that is asked",
        ),
        (
            "services",
            {"settled": [{"kind": "http", "port": "echo", "value": "count", "hosts": "ekho"}]},
            "service echo: the group ekho that is counted stands under groups",
        ),
        (
            "services",
            {"announce": {"port": "ekho", "command": "bye {place}"}},
            "service echo: announce names one of its listeners, and it has a user",
        ),
        (
            "services",
            {"gate": {"kind": "block", "port": "echo"}},
            "service echo: its gate is blocks or replicas, not block",
        ),
        (
            "services",
            {"gate": {"kind": "blocks", "port": "ekho"}},
            "service echo: its gate names a listener of a service, and it has a user",
        ),
        ("services", {"gate": {"kind": "blocks"}}, "service echo: gate: missing 1 required"),
        (
            "services",
            {"drain": {"signal": "SIGTERM", "port": "ekho", "path": "/", "value": "jobs"}},
            "service echo: drain names one of its listeners",
        ),
        *(
            ("services", {"listeners": {"echo": LISTENER | change}}, f"service echo: listener echo: {fault}")
            for change, fault in (
                (
                    {"protocol": "gopher"},
                    "protocol gopher is none of hdfs, http, thrift, postgresql, spark, grpc, tcp",
                ),
                ({"number": 7}, "got an unexpected keyword argument 'number'"),
                ({"tls": "on"}, "tls is 'on', not true or false"),
                ({"leading": "yes"}, "leading is 'yes', not true or false"),
                (
                    {"protocol": "thrift", "metrics": "/metrics"},
                    "metrics is a path of HTTP, and the protocol is thrift",
                ),
                ({"metrics": "metrics"}, "metrics is 'metrics', not a path that starts with /"),
                (
                    {"protocol": "http", "executor_metrics": 7},
                    "executor_metrics is 7, not a path that starts with /",
                ),
            )
        ),
        (
            "services",
            {"listeners": {"echo": {"port": 7, "protocol": "tcp"}}},
            "service echo: listener echo: missing 1",
        ),
        ("services", {"listeners": {"echo": 7}}, "service echo: listener echo: 7 is no mapping"),
        ("services", {"release": "ekho"}, "service echo: its release ekho stands under releases"),
        ("services", {"ports": {}}, "service echo: got an unexpected keyword argument 'ports'"),
        ("groups", {"hosts": "two"}, "group echo: hosts is one, at most one, pair, some, optional or quorum"),
        (
            "services",
            {"leads": {"kind": "thrift", "port": "echo"}},
            "service echo: leads is a question over HTTP to one of its listeners",
        ),
        ("services", {"leads": {"kind": "http"}}, "service echo: leads: missing 1 required"),
        (
            "services",
            {"hands_over": {"port": "echo", "command": "echo elect"}},
            "service echo: a service with hands_over has leads, too",
        ),
        (
            "services",
            {"numbers": {"least": 3, "most": 3}},
            "service echo: its numbers are from least to most, and there are two or more",
        ),
        ("services", {"numbers": {"from": 1}}, "service echo: numbers: got an unexpected keyword argument"),
        (
            "services",
            {"listeners": dict.fromkeys(("echo", "echo_http"), LISTENER)},
            "port 7 is there 2 times",
        ),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, section: str, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(LakehouseError, match=r"services\.yml: .*next: correct") as refused:
        services.load(written(tmp_path, **{section: change}))
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    ("change", "scheme"),
    [
        ({}, "http"),
        ({"tls": True}, "https"),
        ({"protocol": "thrift", "tls": True}, "thrift"),
        ({"protocol": "grpc", "scheme": "sc"}, "sc"),
        ({"protocol": "tcp"}, ""),
    ],
)
def test_the_scheme_of_a_uri_follows_the_protocol_and_tls(
    tmp_path: Path, change: dict[str, Any], scheme: str
) -> None:
    catalogue = services.load(written(tmp_path, services={"listeners": {"echo": LISTENER | change}}))
    assert catalogue.listeners["echo"].uri_scheme == scheme


def test_no_listener_speaks_tls_yet() -> None:
    assert not [listener.name for listener in services.load().listeners.values() if listener.tls]


def test_masters_workers_engines_and_hosts_serve_metrics() -> None:
    """PostgreSQL's are its exporter's; drivers of applications serve theirs on ports of any number."""
    rows = services.load().services.values()
    assert {row.name for row in rows if any(listener.metrics for listener in row.listeners)} >= {
        *("namenode", "datanode", "metastore", "spark_master", "spark_worker", "trino", "flink_jobmanager"),
        *("flink_taskmanager", "node_exporter", "postgres_exporter", "prometheus", "alertmanager"),
        *("spark_thrift", "spark_connect"),
    }


def test_a_row_can_be_a_key_whatever_it_asks(tmp_path: Path) -> None:
    asked = {"kind": "http", "port": "echo", "value": "state", "among": ["leader", None]}
    catalogue = services.load(written(tmp_path, services={"ready": [asked]}))
    assert {catalogue.services["echo"]}
    assert catalogue.services["echo"].ready[0].among == ("leader", None)


def test_a_host_runs_the_services_of_its_groups_and_of_the_profile() -> None:
    here = ["datanodes", "trino_workers"]
    units = {
        profile: [
            row["unit"]
            for row in filters.placed(RAW, here, profile)
            # Whether this one is on only Ansible evaluates.
            if row["role"] != "exporters"
        ]
        for profile in ("full", "core")
    }
    assert units == {
        "full": ["hdfs-datanode.service", "trino.service"],
        "core": ["hdfs-datanode.service"],
    }


@pytest.mark.parametrize(("enabled", "units"), [(True, ["echo.service"]), (False, [])])
def test_a_service_runs_only_where_it_is_switched_on(enabled: bool, units: list[str]) -> None:
    groups = {"echo": {"profile": "core"}}
    raw = {
        "groups": groups,
        "services": {"echo": {"groups": ["echo"], "role": "e", "unit": "echo", "enabled": enabled}},
    }
    assert [row["unit"] for row in filters.placed(raw, ["echo"], "core")] == units


@pytest.mark.parametrize(
    ("role", "profile", "hosts"),
    [("trino", "full", ["n1", "n2"]), ("trino", "core", []), ("flink", "full", [])],
)
def test_an_engine_has_hosts_where_its_first_group_has(role: str, profile: str, hosts: list[str]) -> None:
    assert filters.hosts_of(RAW, role, GROUPS, profile) == hosts


def test_a_unit_of_a_package_has_its_instance() -> None:
    raw = {
        "services": {
            "postgresql": {"unit": "postgresql@*", "instance": "17-main"},
            "trino": {"unit": "trino"},
        }
    }
    assert filters.units(raw) == {"postgresql": "postgresql@17-main", "trino": "trino"}
