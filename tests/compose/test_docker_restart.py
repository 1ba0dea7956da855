"""A Docker daemon that restarts: the stack comes back by itself, and `lakehouse up` starts the nodes.

Everything else on this Docker stops too. It wants a daemon that
scripts/ensure-docker has started, and starts again whatever ran.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.models.containers import Container

from lakehouse import run
from lakehouse.local import nodes
from lakehouse.local.compose import running
from lakehouse.local.compose.dotenv import Settings
from lakehouse.local.compose.labels import PROJECT_LABEL, SERVICE_LABEL
from lakehouse.local.nodes import docker_api
from suites.testbed.waiting import wait_for
from tests.compose.conftest import BIRDS, connect, succeed

pytestmark = [pytest.mark.cluster, pytest.mark.longdrill]

PID_FILE = Path("/run/docker.pid")
NODES = ("inventory/local", "tests/inventory")
PATIENCE = 240


@pytest.fixture
def daemon() -> int:
    """The process of a daemon that is ours to restart."""
    if Path("/run/systemd/system").is_dir() or os.geteuid() != 0 or not PID_FILE.is_file():
        pytest.skip("the Docker daemon is not one that scripts/ensure-docker has started")
    return int(PID_FILE.read_text("utf-8"))


@pytest.fixture
def others(everything: Settings) -> Iterator[None]:
    """What runs beside the stack runs again in the end."""
    with docker_api.connect() as client:
        found = [str(each.name) for each in client.containers.list() if not is_of(everything, each)]
    yield
    with docker_api.connect() as client:
        for name in found:
            client.containers.get(name).start()


def is_of(meant: Settings, container: Container) -> bool:
    return bool(container.labels.get(PROJECT_LABEL) == meant.project)


def restart(daemon: int) -> None:
    os.kill(daemon, signal.SIGTERM)
    wait_for("the daemon to end", lambda: not Path(f"/proc/{daemon}").exists(), seconds=PATIENCE)
    subprocess.run(["scripts/ensure-docker"], cwd=run.ROOT, check=True)


def unhealthy(meant: Settings) -> set[str]:
    """The services that do not answer."""
    with docker_api.connect() as client:
        found = running.containers(client, meant)
        well = {
            each.labels[SERVICE_LABEL]
            for each in found
            if each.attrs["State"].get("Health", {}).get("Status", "healthy") == "healthy"
        }
    return running.wanted(meant) - well


def nodes_of(inventory: str) -> set[str]:
    """The states of an inventory's local nodes."""
    return {node.state for node in nodes.status(inventory)}


@pytest.mark.usefixtures("others")
def test_the_stack_comes_back_and_lakehouse_up_starts_the_nodes(
    everything: Settings, birds: str, daemon: int
) -> None:
    with_nodes = [inventory for inventory in NODES if "running" in nodes_of(inventory)]
    restart(daemon)
    for inventory in with_nodes:
        assert nodes_of(inventory) == {"exited"}
        succeed("up", "--inventory", inventory)
        assert nodes_of(inventory) == {"running"}
    wait_for("every service", lambda: not unhealthy(everything), seconds=PATIENCE)
    spark = connect(everything)
    assert sorted(spark.sql(f"TABLE {birds}")) == BIRDS
    spark.session.stop()
