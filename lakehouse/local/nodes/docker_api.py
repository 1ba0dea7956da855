"""The Docker API: connection, containers, networks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import docker
from docker.errors import DockerException
from docker.models.containers import Container as DockerContainer
from docker.types import IPAMConfig, IPAMPool

from lakehouse.errors import LakehouseError
from lakehouse.local.nodes import routes
from lakehouse.local.nodes.plan import Container, Facts, Network
from lakehouse.local.nodes.spec import LocalCluster

# Everything that belongs to a cluster carries its name here; what does not is never touched.
LABEL = "lakehouse.cluster"
NODE_LABEL = "lakehouse.node"


@contextmanager
def connect() -> Iterator[docker.DockerClient]:
    """Open the Docker that the environment names; any failure of it becomes one line."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        raise LakehouseError(
            f"Docker does not answer: {_one_line(error)}", "scripts/ensure-docker"
        ) from error
    try:
        yield client
    except DockerException as error:
        raise LakehouseError(f"Docker refuses: {_one_line(error)}", "docker info") from error
    finally:
        client.close()


def containers(client: docker.DockerClient, cluster: str) -> list[DockerContainer]:
    """Return the cluster's containers in any state."""
    label = f"{LABEL}={cluster}"
    return list(client.containers.list(all=True, filters={"label": label}, ignore_removed=True))


def facts(client: docker.DockerClient, spec: LocalCluster) -> Facts:
    """Return the networks and containers from which the plan is made."""
    networks = client.networks.list()
    own_networks = [network for network in networks if _owner(network.attrs) == spec.cluster]
    foreign = [_network(network.attrs) for network in networks if network not in own_networks]
    bridges = {f"br-{str(network.id)[:12]}" for network in own_networks}
    return Facts(
        network=_network(own_networks[0].attrs) if own_networks else None,
        containers=tuple(_container(item.attrs) for item in containers(client, spec.cluster)),
        foreign=(*foreign, *routes.present(bridges)),
    )


def create_network(client: docker.DockerClient, spec: LocalCluster) -> None:
    """Create the cluster's bridge with its own subnet."""
    pool = IPAMPool(subnet=str(spec.subnet))
    client.networks.create(
        spec.cluster,
        driver="bridge",
        check_duplicate=True,
        labels={LABEL: spec.cluster},
        ipam=IPAMConfig(pool_configs=[pool]),
    )


def remove_networks(client: docker.DockerClient, cluster: str) -> list[str]:
    """Remove the cluster's networks and return their names."""
    networks = client.networks.list(filters={"label": f"{LABEL}={cluster}"})
    for network in networks:
        network.remove()
    return [str(network.name) for network in networks]


def _owner(attrs: dict[str, Any]) -> str | None:
    return (attrs.get("Labels") or {}).get(LABEL)


def _network(attrs: dict[str, Any]) -> Network:
    pools = (attrs.get("IPAM") or {}).get("Config") or []
    subnets = [pool["Subnet"] for pool in pools if "." in pool.get("Subnet", "")]
    return Network(f"the Docker network {attrs['Name']}", tuple(IPv4Network(subnet) for subnet in subnets))


def _container(attrs: dict[str, Any]) -> Container:
    endpoints = attrs["NetworkSettings"]["Networks"].values()
    # The configured address; the current one is empty while a container does not run.
    addresses = [(endpoint.get("IPAMConfig") or {}).get("IPv4Address") for endpoint in endpoints]
    return Container(
        node=attrs["Config"]["Labels"].get(NODE_LABEL, attrs["Name"]),
        state=attrs["State"]["Status"],
        address=next((IPv4Address(address) for address in addresses if address), None),
        memory=attrs["HostConfig"]["Memory"],
    )


def _one_line(error: Exception) -> str:
    explanation = getattr(error, "explanation", None) or str(error)
    if isinstance(explanation, bytes):
        explanation = explanation.decode(errors="replace")
    with suppress(ValueError, TypeError, KeyError):
        explanation = json.loads(explanation)["message"]
    return " ".join(str(explanation).split())
