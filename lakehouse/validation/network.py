"""Names, addresses and ports of machines and services."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address

from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation.finding import Finding

# RFC 1123. An underscore passes in DNS but not in java.net.URI, and every service address here becomes a URI.
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
# Daemons run without the right to bind lower ones.
LOWEST_PORT, HIGHEST_PORT = 1024, 65535
TRUSTED = "lakehouse_public_network_is_firewalled"


def host_name(host: Host) -> list[Finding]:
    """Check that the host's name can stand in a URI."""
    if HOST_NAME.fullmatch(host.name):
        return []
    return [
        Finding(
            "net.names",
            host.name,
            'the name contains "_"' if "_" in host.name else "not a host name",
            "rename the host in the inventory: Hive and Spark cannot put this name into a URI",
            "letters, digits, dashes and dots",
        )
    ]


def host_address(host: Host) -> list[Finding]:
    """Check that ``ansible_host`` is an IPv4 address that other machines can reach: daemons bind it."""
    if host.variables.get("lakehouse_target") == "compose":
        return []  # docker's DNS knows a container by its name
    advice = "set ansible_host to the address that the other nodes reach"
    if not host.address:
        return [Finding("net.address", host.name, "ansible_host is not set", advice, "an IPv4 address")]
    try:
        address = IPv4Address(host.address)
    except AddressValueError:
        fact = f"ansible_host is {host.address!r}"
        return [Finding("net.address", host.name, fact, advice, "an IPv4 address")]
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        fact = f"ansible_host is {host.address}"
        return [Finding("net.address", host.name, fact, advice, "not a loopback or wildcard address")]
    return []


def public_address(host: Host) -> list[Finding]:
    """Check that no daemon is bound to an address of the Internet: it believes the name that it is given."""
    try:
        is_public = IPv4Address(host.address).is_global
    except AddressValueError:
        return []
    if not is_public or host.variables.get(TRUSTED):
        return []
    fact = f"ansible_host {host.address} is a public address"
    advice = f"use one of a private network, or say that a firewall keeps strangers out: {TRUSTED}: true"
    return [Finding("net.public", host.name, fact, advice, "a private address")]


def shared_addresses(inventory: Inventory) -> list[Finding]:
    """Check that every host has an address of its own."""
    users: dict[str, list[str]] = {}
    for host in inventory.hosts:
        if host.address:
            users.setdefault(host.address, []).append(host.name)
    return [
        Finding(
            "net.address",
            ",".join(names),
            f"all have the address {address}",
            "correct ansible_host of all but one",
            "one address per host",
        )
        for address, names in users.items()
        if len(names) > 1
    ]


def alike(inventory: Inventory) -> list[Finding]:
    """Check that host names differ in more than case, which DNS and /etc/hosts ignore."""
    hosts_by_name: dict[str, list[str]] = {}
    for host in inventory.hosts:
        hosts_by_name.setdefault(host.name.lower(), []).append(host.name)
    return [
        Finding(
            "net.names",
            ",".join(names),
            "their names differ in upper and lower case alone",
            "rename all but one: to the network it is one name",
            "a name of its own",
        )
        for names in hosts_by_name.values()
        if len(names) > 1
    ]


def ports(host: Host, of_ssh: object = None) -> list[Finding]:
    """Check that every service has a port of its own that an ordinary user may bind.

    ``of_ssh`` is ansible_port, where the inventory sets it.
    """
    table = host.variables.get("lakehouse_ports")
    if not isinstance(table, Mapping):
        return []
    findings = []
    owner: dict[int, str] = {}
    for name, value in table.items():
        try:
            port = int(value)
        except (TypeError, ValueError):
            port = 0
        key = f"lakehouse_ports.{name}"
        if not LOWEST_PORT <= port <= HIGHEST_PORT:
            span = f"{LOWEST_PORT} to {HIGHEST_PORT}"
            findings.append(
                Finding("net.ports", host.name, f"{key} is {value!r}", "choose another port", span)
            )
        elif port in owner:
            fact = f"{key} is {port}, and so is lakehouse_ports.{owner[port]}"
            findings.append(Finding("net.ports", host.name, fact, "change one of them", "every port once"))
        else:
            owner[port] = name
    if isinstance(of_ssh, int | str) and str(of_ssh).isdigit() and int(of_ssh) in owner:
        fact = f"ansible_port is {of_ssh}, and so is lakehouse_ports.{owner[int(of_ssh)]}"
        advice = "set ansible_port to the port of SSH, or leave it out: it is 22"
        findings.append(Finding("net.ports", host.name, fact, advice, "every port once"))
    return findings
