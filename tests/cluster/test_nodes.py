"""Local nodes on a real Docker: one small node of a cluster of its own, which no other test uses."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from docker.models.containers import Container
from docker.types import IPAMConfig, IPAMPool

from lakehouse import run
from lakehouse.errors import LakehouseError
from lakehouse.local import nodes
from lakehouse.local.nodes import owner
from lakehouse.model import inventory

pytestmark = pytest.mark.cluster

CLUSTER = "kit-nodes-test"
SUBNET = "10.213.251.0/28"
STRANGERS_SUBNET = "10.213.252.0/28"
CONTAINER = f"{CLUSTER}-solo"


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    engine = docker.from_env()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def describe(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write an inventory of the one node, with other values where a test wants them."""
    folder = tmp_path_factory.mktemp("nodes")

    def write(
        address: str = "10.213.251.5", subnet: str = SUBNET, memory_mb: int = 512, checkout: str = "first"
    ) -> Path:
        state = folder / checkout / CLUSTER
        variables: dict[str, Any] = {
            "local_nodes_cluster": CLUSTER,
            "local_nodes_subnet": subnet,
            "local_nodes_suite": "trixie",
            "local_nodes_memory_mb": memory_mb,
            "local_nodes_state": str(state),
        }
        path = folder / f"{len(list(folder.iterdir()))}.yml"
        path.write_text(
            yaml.safe_dump({"all": {"hosts": {"solo": {"ansible_host": address}}, "vars": variables}})
        )
        return path

    return write


@pytest.fixture(scope="module")
def solo(describe: Callable[..., Path]) -> Iterator[Path]:
    """Return the inventory of a node that runs."""
    path = describe()
    nodes.down(path, print, whosever=True)
    nodes.up(path, print)
    yield path
    nodes.down(path, print)


@pytest.fixture
def said() -> list[str]:
    return []


def state_of(path: Path) -> Path:
    return Path(inventory.load(path).hosts[0].variables["local_nodes_state"])


def ssh(path: Path, command: str) -> str:
    """Run a command as Ansible would: with the cluster's key, and only on a node whose key is known."""
    state = state_of(path)
    options = ["BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={state / 'known_hosts'}"]
    flags = [part for option in options for part in ("-o", option)]
    address = inventory.load(path).hosts[0].address
    call = ["ssh", *flags, "-i", str(state / "id_ed25519"), f"root@{address}", command]
    return subprocess.run(call, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


def found(client: docker.DockerClient) -> Container:
    return client.containers.get(CONTAINER)


def identity(client: docker.DockerClient) -> tuple[str | None, str]:
    container = found(client)
    return container.id, container.attrs["State"]["StartedAt"]


def test_node_is_a_bare_machine_that_ssh_reaches(solo: Path) -> None:
    assert ssh(solo, "cat /proc/1/comm") == "systemd"
    assert ssh(solo, "systemctl is-system-running --wait") == "running"
    assert ssh(solo, "hostname") == "solo"
    assert ssh(solo, "command -v java || command -v psql || echo bare") == "bare"


def test_node_resolves_itself_and_owns_its_hosts_file(solo: Path) -> None:
    assert ssh(solo, "getent hosts solo").split() == ["10.213.251.5", "solo"]
    assert ssh(solo, "mountpoint -q /etc/hosts || stat -c %a /etc/hosts") == "644"


def test_keys_are_for_their_owner_alone(solo: Path) -> None:
    state = state_of(solo)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (state, *state.iterdir())}
    assert modes == {
        CLUSTER: 0o700,
        "secrets": 0o700,
        "id_ed25519": 0o600,
        "id_ed25519.pub": 0o644,
        "known_hosts": 0o600,
        "owner": 0o600,
    }


def test_second_up_changes_nothing(solo: Path, client: docker.DockerClient, said: list[str]) -> None:
    before = identity(client)
    nodes.up(solo, said.append)
    assert identity(client) == before
    assert said == [f"{CLUSTER}: 1 node answers, nothing to change"]


def test_node_that_was_killed_comes_back_with_its_data(solo: Path, client: docker.DockerClient) -> None:
    ssh(solo, "echo precious > /var/lib/data && echo 192.0.2.1 elsewhere >> /etc/hosts && sync")
    found(client).kill()
    assert [node.state for node in nodes.status(solo)] == ["exited"]
    nodes.up(solo, print)
    assert ssh(solo, "cat /var/lib/data") == "precious"
    assert ssh(solo, "getent hosts elsewhere").split() == ["192.0.2.1", "elsewhere"]


def test_memory_changes_while_the_node_runs(
    solo: Path, describe: Callable[..., Path], client: docker.DockerClient, said: list[str]
) -> None:
    before = identity(client)
    nodes.up(describe(memory_mb=640), said.append)
    assert "resize solo (10.213.251.5)" in said
    assert found(client).attrs["HostConfig"]["Memory"] == 640 << 20
    nodes.up(solo, print)
    assert identity(client) == before


@pytest.mark.usefixtures("solo")
def test_another_address_is_refused_rather_than_losing_the_data(
    describe: Callable[..., Path], client: docker.DockerClient
) -> None:
    before = identity(client)
    with pytest.raises(LakehouseError, match=r"solo was made with the address .*; next: make down"):
        nodes.up(describe(address="10.213.251.6"), print)
    assert identity(client) == before


def test_lost_keys_are_made_again(solo: Path, client: docker.DockerClient) -> None:
    before = identity(client)
    shutil.rmtree(state_of(solo))
    nodes.up(solo, print)
    assert ssh(solo, "hostname") == "solo"
    assert identity(client) == before


def test_another_checkout_is_refused_until_it_takes_the_nodes_over(
    solo: Path,
    describe: Callable[..., Path],
    client: docker.DockerClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, first = identity(client), run.ROOT
    second = describe(checkout="second")
    monkeypatch.setattr(owner, "ROOT", Path("/elsewhere"))
    refusal = re.escape(f"the nodes of {CLUSTER} belong to another checkout ({first}); nothing was touched")
    for verb in (nodes.up, nodes.down):
        with pytest.raises(LakehouseError, match=refusal):
            verb(second, print)
    assert ssh(solo, "hostname") == "solo"
    with pytest.raises(LakehouseError, match=f"is the cluster {CLUSTER}, not another"):
        nodes.take_over(second, "another", print)
    nodes.take_over(second, CLUSTER, print)
    nodes.up(second, print)
    assert ssh(second, "hostname") == "solo"
    assert identity(client) == before
    # The first one has the word too, and its key again.
    monkeypatch.setattr(owner, "ROOT", first)
    nodes.up(solo, print)
    assert ssh(solo, "hostname") == "solo"


def test_leftover_of_an_interrupted_run_is_replaced(solo: Path, client: docker.DockerClient) -> None:
    container = found(client)
    image, labels = container.attrs["Config"]["Image"], container.labels
    container.remove(force=True)
    client.containers.create(image, "/sbin/init", name=CONTAINER, labels=labels)
    nodes.up(solo, print)
    assert ssh(solo, "hostname") == "solo"


def test_subnet_of_somebody_else_is_named_and_left_alone(
    describe: Callable[..., Path], client: docker.DockerClient
) -> None:
    pool = IPAMPool(subnet=STRANGERS_SUBNET)
    stranger = client.networks.create("kit-nodes-stranger", ipam=IPAMConfig(pool_configs=[pool]))
    other = describe(address="10.213.252.5", subnet=STRANGERS_SUBNET)
    nodes.down(other, print)
    try:
        with pytest.raises(LakehouseError, match="is taken: the Docker network kit-nodes-stranger has"):
            nodes.up(other, print)
        nodes.down(other, print)
        assert client.networks.list(names=["kit-nodes-stranger"])
    finally:
        stranger.remove()


def test_down_leaves_nothing_and_can_be_repeated(
    describe: Callable[..., Path], client: docker.DockerClient, said: list[str]
) -> None:
    path = describe()
    nodes.up(path, print)
    nodes.down(path, said.append)
    nodes.down(path, said.append)
    assert said == [
        f"{CLUSTER}: removed 1 node and 1 network",
        f"{CLUSTER}: removed 0 nodes and 0 networks",
    ]
    assert not client.containers.list(all=True, filters={"name": CLUSTER})
    assert not client.networks.list(names=[CLUSTER])
    assert not state_of(path).exists()
    assert [node.state for node in nodes.status(path)] == ["absent"]


def test_leftovers_of_another_checkout_are_removed_only_if_asked(
    describe: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    nodes.up(describe(), print)
    second = describe(checkout="second")
    monkeypatch.setattr(owner, "ROOT", Path("/elsewhere"))
    with pytest.raises(LakehouseError, match="belong to another checkout"):
        nodes.down(second, print)
    nodes.down(second, said.append, whosever=True)
    assert said == [f"{CLUSTER}: removed 1 node and 1 network"]
