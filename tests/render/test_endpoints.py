"""Where everything is: only what runs is named, and at the address where clients find it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lakehouse import run
from lakehouse.local.compose.dotenv import EVERYWHERE
from lakehouse.report import cluster
from tests.render import rendering

COMPOSE = Path("inventory/compose")
LOCAL = Path("inventory/local")


def written(inventory: Path, folder: Path, **environment: str) -> dict[str, Any]:
    """Return what the playbook writes for an inventory where these variables are set."""
    file = folder / "endpoints.json"
    program = run.program("ansible-playbook")
    argv = [
        program,
        "-i",
        str(inventory),
        "playbooks/endpoints.yml",
        "-e",
        f"lakehouse_endpoints_file={file}",
    ]
    done = subprocess.run(
        argv, cwd=run.ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def test_machines_are_found_at_their_addresses(tmp_path: Path) -> None:
    found = written(LOCAL, tmp_path)
    assert found["compose_project"] is None
    assert found["hosts"]["cpu-node2"]["address"] == "172.28.0.12"
    assert found["namenode"]["http"] == "http://172.28.0.11:9870"
    assert found["spark"]["client"] == found["spark_connect"]["host"] == "cpu-node2"
    assert found["flink"]["history"].endswith("://172.28.0.13:8084")


def test_a_group_that_nobody_needs_may_be_empty(tmp_path: Path) -> None:
    copied = rendering.copy(LOCAL, tmp_path)
    hosts = copied / "hosts.yml"
    text = hosts.read_text(encoding="utf-8")
    assert "spark_history:\n  hosts:\n    cpu-node1:\n" in text
    hosts.write_text(text.replace("spark_history:\n  hosts:\n    cpu-node1:\n", ""), encoding="utf-8")
    found = written(copied, tmp_path, LAKEHOUSE_PROFILE="core")
    assert (found["spark"]["history_http"], found["trino"], found["flink"]) == (None, None, None)


def test_the_thrift_server_has_an_address_while_it_is_on(tmp_path: Path) -> None:
    assert written(LOCAL, tmp_path)["spark_thrift"] is None
    copied = rendering.copy(LOCAL, tmp_path)
    (copied / "group_vars/all/tuning.yml").write_text("spark_thrift_enabled: true\n", encoding="utf-8")
    found = written(copied, tmp_path)["spark_thrift"]
    assert found == {"host": "cpu-node2", "url": "jdbc:hive2://172.28.0.12:10000"}
    addresses = cluster.read(tmp_path / "endpoints.json").addresses
    assert cluster.Address("Spark Thrift", found["url"]) in addresses


def test_one_line_moves_one_port_and_leaves_the_others(tmp_path: Path) -> None:
    copied = rendering.copy(LOCAL, tmp_path)
    line = "lakehouse_ports: {trino_http: 9999}\n"
    (copied / "group_vars/all/tuning.yml").write_text(line, encoding="utf-8")
    found = written(copied, tmp_path)
    assert found["trino"]["http"] == "http://172.28.0.11:9999"
    assert found["namenode"]["http"] == "http://172.28.0.11:9870"


@pytest.mark.parametrize(
    ("profiles", "engines", "client"),
    [
        ("all", {"trino", "flink"}, "client"),
        ("core", set(), "spark-connect"),
        ("core, trino", {"trino"}, "spark-connect"),
        ("flink,client", {"flink"}, "client"),
    ],
)
def test_containers_are_found_by_their_profile(
    tmp_path: Path, profiles: str, engines: set[str], client: str
) -> None:
    found = written(
        COMPOSE, tmp_path, COMPOSE_PROJECT_NAME="lake", COMPOSE_PROFILES=profiles, METASTORE_PORT="19083"
    )
    assert found["compose_project"] == "lake"
    assert found["metastore"] == {"host": "metastore", "address": "127.0.0.1", "port": 19083}
    assert found["spark"]["client"] == client
    assert {name for name in ("trino", "flink") if found[name]} == engines
    assert ("trino" in found["hosts"], "flink-taskmanager" in found["hosts"]) == (
        "trino" in engines,
        "flink" in engines,
    )


@pytest.mark.parametrize(("bound", "address"), [(EVERYWHERE, "127.0.0.1"), ("192.0.2.7", "192.0.2.7")])
def test_containers_are_found_where_their_ports_are_bound(tmp_path: Path, bound: str, address: str) -> None:
    found = written(COMPOSE, tmp_path, BIND_ADDRESS=bound)
    assert {host["address"] for host in found["hosts"].values()} == {address}
    assert found["metastore"]["address"] == address
