"""The verbs: up, down, status."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import docker

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.local.nodes import docker_api, image, keys, machine, owner, plan
from lakehouse.local.nodes.plan import Plan, Verb
from lakehouse.local.nodes.spec import LocalCluster, Node, read
from lakehouse.model import inventory
from plugins.module_utils.lakehouse.counting import counted

Log = Callable[[str], None]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_READY_SECONDS = 60
_SSH_PORT = 22
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class NodeStatus:
    """One node of the inventory, and the state of its container ("absent" when there is none)."""

    name: str
    address: str
    state: str


def up(inventory_path: Path | str, log: Log) -> None:
    """Make the local nodes of an inventory run and answer by SSH; a second call changes nothing.

    Nodes that were stopped are started with their data. Raises LakehouseError where only a new node would do.
    """
    spec = _spec(inventory_path, log)
    if spec is None:
        return
    with docker_api.connect() as client:
        marks = _marks(client, spec)
        owner.refuse_strangers(spec, marks, str(inventory_path))
        steps = plan.to_start(spec, docker_api.facts(client, spec), str(inventory_path))
        key = keys.ensure(spec.state, spec.cluster)
        owner.adopt(spec, marks)
        _apply(client, spec, steps, key, log)
        host_keys = _await(client, spec, key)
    keys.remember(spec, host_keys)
    answer = counted(len(spec.nodes), "node answers", "nodes answer")
    log(f"{spec.cluster}: {answer}" + ("" if steps else ", nothing to change"))


def down(inventory_path: Path | str, log: Log, *, whosever: bool = False) -> None:
    """Remove the local nodes of an inventory with their data, network, keys and secrets.

    Those of another checkout only with `whosever`; raises LakehouseError otherwise.
    """
    spec = _spec(inventory_path, log)
    if spec is None:
        return
    with docker_api.connect() as client:
        if not whosever:
            owner.refuse_strangers(spec, _marks(client, spec), str(inventory_path))
        containers = docker_api.containers(client, spec.cluster)
        _together(machine.remove, containers)
        networks = docker_api.remove_networks(client, spec.cluster)
    if spec.state.exists():
        shutil.rmtree(spec.state)
    log(f"{spec.cluster}: removed {counted(len(containers), 'node')} and {counted(len(networks), 'network')}")


def take_over(inventory_path: Path | str, cluster: str, log: Log) -> None:
    """Transfer another checkout's nodes to this one; `cluster` is their name, typed to confirm."""
    spec = _spec(inventory_path, log)
    if spec is None:
        return
    if cluster != spec.cluster:
        raise UsageError(
            f"{inventory_path} is the cluster {spec.cluster}, not {cluster}; nothing was touched"
        )
    with docker_api.connect() as client:
        containers = docker_api.containers(client, spec.cluster)
        if not containers:
            raise LakehouseError(f"{cluster} has no nodes to take over", ".venv/bin/lakehouse nodes")
        key = keys.ensure(spec.state, spec.cluster)
        owner.adopt(spec, [owner.mark(container) for container in containers])
        for container in containers:
            machine.authorize(container, key)
    log(f"{spec.cluster}: {counted(len(containers), 'node is', 'nodes are')} this checkout's now")


def _marks(client: docker.DockerClient, spec: LocalCluster) -> list[owner.Mark]:
    # A container that never ran is empty: an interrupted run created it.
    containers = docker_api.containers(client, spec.cluster)
    return [owner.mark(container) for container in containers if container.status != "created"]


def status(inventory_path: Path | str) -> list[NodeStatus]:
    """Return the local nodes of an inventory; empty when its machines are real."""
    spec = read(inventory.load(inventory_path))
    if spec is None:
        return []
    with docker_api.connect() as client:
        states = {container.node: container.state for container in docker_api.facts(client, spec).containers}
    return [NodeStatus(node.name, str(node.address), states.get(node.name, "absent")) for node in spec.nodes]


def _spec(inventory_path: Path | str, log: Log) -> LocalCluster | None:
    spec = read(inventory.load(inventory_path))
    if spec is None:
        log(f"{inventory_path} describes real machines (no local_nodes_cluster): they are left alone")
    return spec


def _apply(client: docker.DockerClient, spec: LocalCluster, steps: Plan, key: str, log: Log) -> None:
    reference = image.ensure(client, spec.suite, log) if steps.needs_image else ""
    for verb in steps.network:
        log(f"{verb} network {spec.cluster} ({spec.subnet})")
        if verb is Verb.REMOVE:
            docker_api.remove_networks(client, spec.cluster)
        else:
            docker_api.create_network(client, spec)

    def apply(node: Node) -> None:
        for verb in steps.nodes[node.name]:
            log(f"{verb} {node.name} ({node.address})")
            if verb is Verb.CREATE:
                machine.create(client, spec, node, reference, key)
            else:
                machine.change(client, spec, node, verb)

    _together(apply, [node for node in spec.nodes if node.name in steps.nodes])


def _await(client: docker.DockerClient, spec: LocalCluster, key: str) -> dict[str, str]:
    """Wait until every node has booted and accepts the key over SSH; return the public host keys by name."""
    deadline = time.monotonic() + _READY_SECONDS

    def ready(node: Node) -> str:
        container = machine.get(client, spec, node)
        while True:
            observation = machine.observe(container)
            if observation.booted and key not in observation.authorized:
                machine.authorize(container, key)
            greeting = _greeting(node)
            if observation.booted and observation.host_key and greeting.startswith("SSH-"):
                return observation.host_key
            if time.monotonic() > deadline:
                raise LakehouseError(
                    f"{node.name} is not ready after {_READY_SECONDS} s: systemd says {observation.system!r},"
                    f" {node.address}:{_SSH_PORT} says {greeting!r}",
                    f"docker exec {container.name} systemctl --failed",
                )
            time.sleep(_PAUSE_SECONDS)

    return dict(zip((node.name for node in spec.nodes), _together(ready, spec.nodes), strict=True))


def _greeting(node: Node) -> str:
    try:
        with socket.create_connection((str(node.address), _SSH_PORT), timeout=2) as connection:
            return connection.recv(64).decode(errors="replace").strip()
    except OSError as error:
        return str(error)


def _together(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        return list(pool.map(work, items))
