"""Preconditions of the stack, checked before it starts: a line for each failure."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

import docker

from lakehouse.errors import LakehouseError
from lakehouse.local.compose import running, services
from lakehouse.local.compose.dotenv import Settings

# The name becomes part of a cluster's name, and that of URIs.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
PROFILES = ("core", "trino", "flink", "client", "load", "past", "all", "three-datanodes")
LOWEST_PORT, HIGHEST_PORT = 1024, 65535
# Each of them is a stack; the others add to one.
STACKS = ("core", "trino", "flink", "all")


def name(settings: Settings) -> list[str]:
    """Check the project's name."""
    if NAME.fullmatch(settings.project):
        return []
    advice = "use small letters, digits and dashes"
    why = ' contains "_", which no URI takes' if "_" in settings.project else " cannot stand in a URI"
    return [f"COMPOSE_PROJECT_NAME {settings.project!r}{why}; next: {advice} in {settings.file}"]


def profiles(settings: Settings) -> list[str]:
    """Check that every profile is one."""
    unknown = [profile for profile in settings.profiles if profile not in PROFILES]
    if unknown:
        return [
            f"COMPOSE_PROFILES has no profile {', '.join(unknown)};"
            f" next: choose of core, trino, flink, all in {settings.file}"
        ]
    if not set(settings.profiles) & set(STACKS):
        return [f"COMPOSE_PROFILES is empty; next: choose of core, trino, flink, all in {settings.file}"]
    return []


def ports(settings: Settings) -> list[str]:
    """Check that every port is valid, unique, and not an internal port of its container."""
    lines = []
    owner: dict[int, str] = {}
    container_ports = {
        (variable, port): service.name
        for service in services.chosen(settings.profiles)
        for variable in service.ports
        for port in service.exposed
    }
    for variable, value in settings.ports.items():
        if not value.isdecimal() or not LOWEST_PORT <= int(value) <= HIGHEST_PORT:
            span = f"{LOWEST_PORT} to {HIGHEST_PORT}"
            lines.append(f"{variable} is {value!r} (expected {span}); next: change it in {settings.file}")
            continue
        port = int(value)
        if (first := owner.setdefault(port, variable)) != variable:
            lines.append(f"{variable} is {port}, as {first} is; next: change one of them in {settings.file}")
        if service := container_ports.get((variable, port)):
            lines.append(
                f"{variable} is {port}, which {service} has inside; next: change it in {settings.file}"
            )
    return lines


def address(settings: Settings, is_free: Callable[[str, int], bool]) -> list[str]:
    """Check that the ports can be bound where they are to be."""
    value = settings.values["BIND_ADDRESS"]
    try:
        if is_free(str(ipaddress.IPv4Address(value)), 0):
            return []
    except ValueError:
        pass
    return [
        f"BIND_ADDRESS {value!r} is no IPv4 address of this computer;"
        f" next: ip -4 -brief address, and change it in {settings.file}"
    ]


def busy(settings: Settings, own_ports: Iterable[int], is_free: Callable[[str, int], bool]) -> list[str]:
    """Check that no other program uses a required port; `own_ports` are those of the running stack."""
    where = settings.values["BIND_ADDRESS"]
    needed = {variable for service in services.chosen(settings.profiles) for variable in service.ports}
    return [
        f"port {value} of {variable} is busy on {where}; next: ss -ltnp 'sport = :{value}' shows"
        f" who holds it, or change {variable} in {settings.file}"
        for variable, value in settings.ports.items()
        if variable in needed and int(value) not in own_ports and not is_free(where, int(value))
    ]


def memory(settings: Settings, total_mb: int) -> list[str]:
    """Check that Docker's machine has the memory of the services of the profiles."""
    required, least = services.memory_mb(settings.profiles), services.memory_mb(["core"])
    # A machine of 8 GiB reports a little less.
    available = total_mb / 0.95
    if required <= available:
        return []
    smaller = (
        f", or: COMPOSE_PROFILES=core DATANODES=1 make compose-up ({least} MB)" if least <= available else ""
    )
    return [
        f"Docker has {total_mb} MB of memory, the profiles {', '.join(settings.profiles)} need {required} MB;"
        f" next: give Docker more{smaller}"
    ]


def refuse(client: docker.DockerClient, settings: Settings) -> None:
    """Raise LakehouseError with every finding, one line each."""
    lines = name(settings) + profiles(settings) + ports(settings)
    if not lines:
        total = int(client.info()["MemTotal"]) >> 20
        lines = address(settings, _is_free) or busy(settings, _held(client, settings), _is_free)
        lines += memory(settings, total)
    if lines:
        raise LakehouseError("\n".join(lines))


def _held(client: docker.DockerClient, settings: Settings) -> set[int]:
    containers = running.containers(client, settings)
    return {port for container in containers for port in published(container.attrs)}


def published(attributes: Mapping[str, object]) -> set[int]:
    """Ports of this computer that a container holds."""
    bindings = attributes["NetworkSettings"]["Ports"] or {}  # type: ignore[index]
    return {int(place["HostPort"]) for places in bindings.values() for place in places or []}


def _is_free(address: str, port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


def advice(settings: Settings) -> str:
    """Return the command that shows what the containers said."""
    return f"docker compose --project-name {settings.project} logs --tail 20"
