"""The local nodes of an inventory, validated before any change."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.model.inventory import Host, Inventory

# A name becomes a host name and part of a URI: Java refuses an underscore in both.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LEAST_MEMORY_MB = 256


@dataclass(frozen=True)
class Node:
    """One container to have."""

    name: str
    address: ipaddress.IPv4Address
    memory_mb: int


@dataclass(frozen=True)
class LocalCluster:
    """The local part of an inventory."""

    cluster: str
    subnet: ipaddress.IPv4Network
    suite: str
    state: Path
    nodes: tuple[Node, ...]


def read(inventory: Inventory) -> LocalCluster | None:
    """Return what the inventory wants on this computer; None when all of its machines are real.

    Raises LakehouseError for the first value that cannot work.
    """
    local = [host for host in inventory.hosts if "local_nodes_cluster" in host.variables]
    if not local:
        return None
    cluster = _shared(local, "local_nodes_cluster")
    if not _NAME.fullmatch(cluster):
        raise LakehouseError(
            f"local_nodes_cluster {cluster!r}: only lower-case letters, digits and inner dashes"
        )
    subnet = _subnet(_shared(local, "local_nodes_subnet"))
    state = Path(_shared(local, "local_nodes_state"))
    if state.name != cluster:
        # This directory is removed with the nodes.
        raise LakehouseError(f"local_nodes_state {state}: the last directory must be named {cluster}")
    nodes = tuple(_node(host, subnet) for host in local)
    if len({node.address for node in nodes}) < len(nodes):
        raise LakehouseError(
            f"two nodes share an address: {', '.join(f'{n.name}={n.address}' for n in nodes)}"
        )
    return LocalCluster(cluster, subnet, _shared(local, "local_nodes_suite"), state, nodes)


def _shared(hosts: list[Host], name: str) -> str:
    values = {host.name: _value(host, name) for host in hosts}
    if len(set(values.values())) > 1:
        assignments = ", ".join(f"{host}={value}" for host, value in values.items())
        raise LakehouseError(f"{name} must be the same on all local nodes: {assignments}")
    return values[hosts[0].name]


def _value(host: Host, name: str) -> str:
    if name not in host.variables:
        raise LakehouseError(f"{host.name}: {name} is not set; a local node needs it")
    return str(host.variables[name])


def _subnet(text: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError as error:
        raise LakehouseError(
            f"local_nodes_subnet {text!r} is not an IPv4 network such as 172.28.0.0/24"
        ) from error


def _node(host: Host, subnet: ipaddress.IPv4Network) -> Node:
    if not _NAME.fullmatch(host.name):
        raise LakehouseError(f"node name {host.name!r}: only lower-case letters, digits and inner dashes")
    try:
        address = ipaddress.IPv4Address(host.address)
    except ValueError as error:
        raise LakehouseError(f"{host.name}: ansible_host {host.address!r} is not an IPv4 address") from error
    # Docker reserves the first address for the bridge.
    reserved = (subnet.network_address, subnet.network_address + 1, subnet.broadcast_address)
    if address not in subnet or address in reserved:
        raise LakehouseError(f"{host.name}: {address} is not a free address of local_nodes_subnet {subnet}")
    memory = _value(host, "local_nodes_memory_mb")
    if not memory.isdigit() or int(memory) < _LEAST_MEMORY_MB:
        raise LakehouseError(
            f"{host.name}: local_nodes_memory_mb is {memory!r}, not at least {_LEAST_MEMORY_MB}"
        )
    return Node(name=host.name, address=address, memory_mb=int(memory))
