"""The steps from the current to the desired nodes, as data: no function here calls Docker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network

from lakehouse.errors import LakehouseError
from lakehouse.local.nodes.spec import LocalCluster, Node

_MEBIBYTE = 1024 * 1024


class Verb(StrEnum):
    """What can be done to the network or to a node."""

    CREATE = "create"
    REMOVE = "remove"
    START = "start"
    UNPAUSE = "unpause"
    RESIZE = "resize"


@dataclass(frozen=True)
class Plan:
    """The steps in order: those for the network first, then those for each node that needs any."""

    network: tuple[Verb, ...] = ()
    nodes: Mapping[str, tuple[Verb, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.network or self.nodes)

    @property
    def needs_image(self) -> bool:
        """Whether a node is made."""
        return any(Verb.CREATE in verbs for verbs in self.nodes.values())


@dataclass(frozen=True)
class Container:
    """A container as Docker describes it; memory in bytes, 0 for no limit."""

    node: str
    state: str
    address: IPv4Address | None
    memory: int


@dataclass(frozen=True)
class Network:
    """What holds addresses: a Docker network or a route of this computer. The name is meant for people."""

    name: str
    subnets: tuple[IPv4Network, ...]


@dataclass(frozen=True)
class Facts:
    """What was found: ours by its label, and everything else that holds addresses."""

    network: Network | None
    containers: tuple[Container, ...]
    foreign: tuple[Network, ...]


def to_start(spec: LocalCluster, facts: Facts, inventory: str) -> Plan:
    """Return the steps to the desired state; an empty plan when it is already so.

    A container that has run holds data, so it is started, resized or left as it is, and never replaced: where
    only a new container would do, LakehouseError says so. `inventory` is for the command that it names.
    """
    remake = f"make down INVENTORY={inventory}"
    _refuse_leavers(spec, facts, remake)
    existing = {container.node: container for container in facts.containers}
    nodes = {node.name: _node_steps(node, existing.get(node.name), remake) for node in spec.nodes}
    return Plan(
        network=_network_steps(spec, facts, remake),
        nodes={name: verbs for name, verbs in nodes.items() if verbs},
    )


def _refuse_leavers(spec: LocalCluster, facts: Facts, remake: str) -> None:
    names = {node.name for node in spec.nodes}
    addresses = {node.address for node in spec.nodes}
    for container in facts.containers:
        if container.node not in names and container.address in addresses:
            raise LakehouseError(
                f"{container.address} still belongs to {container.node}, which has left the inventory", remake
            )


def _network_steps(spec: LocalCluster, facts: Facts, remake: str) -> tuple[Verb, ...]:
    own_network = facts.network
    if own_network and own_network.subnets == (spec.subnet,):
        return ()
    if own_network and facts.containers:
        subnets = ", ".join(map(str, own_network.subnets))
        raise LakehouseError(
            f"the nodes of {spec.cluster} were made in {subnets}, not in {spec.subnet}", remake
        )
    for network in facts.foreign:
        overlapping = next((subnet for subnet in network.subnets if subnet.overlaps(spec.subnet)), None)
        if overlapping:
            raise LakehouseError(
                f"local_nodes_subnet {spec.subnet} is taken: {network.name} has {overlapping}"
            )
    return (Verb.REMOVE, Verb.CREATE) if own_network else (Verb.CREATE,)


def _node_steps(node: Node, container: Container | None, remake: str) -> tuple[Verb, ...]:
    if container is None:
        return (Verb.CREATE,)
    if container.state in {"created", "dead", "removing"}:
        # An interrupted run left it: it never ran or is half removed, so it is empty.
        return (Verb.REMOVE, Verb.CREATE)
    if container.address != node.address:
        raise LakehouseError(
            f"{node.name} was made with the address {container.address}, not {node.address}", remake
        )
    resize = () if container.memory == node.memory_mb * _MEBIBYTE else (Verb.RESIZE,)
    revive = {"exited": (Verb.START,), "paused": (Verb.UNPAUSE,)}
    return resize + revive.get(container.state, ())
