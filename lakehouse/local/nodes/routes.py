"""The networks that this computer already reaches otherwise; Docker looks only at its own."""

from __future__ import annotations

import socket
import struct
from collections.abc import Container
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from lakehouse.local.nodes.plan import Network

_TABLE = Path("/proc/net/route")


def present(own_bridges: Container[str]) -> tuple[Network, ...]:
    """Return the routes of this computer but those through our own bridges."""
    return parse(_TABLE.read_text(), own_bridges) if _TABLE.exists() else ()


def parse(table: str, own_bridges: Container[str] = ()) -> tuple[Network, ...]:
    """Read the kernel's table of hexadecimal words, without the default route, which covers everything."""
    routes = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        destination, mask = _address(fields[1]), _address(fields[7])
        subnet = IPv4Network(f"{destination}/{mask}")
        if subnet.prefixlen and fields[0] not in own_bridges:
            routes.append(Network(f"the route through {fields[0]}", (subnet,)))
    return tuple(routes)


def _address(word: str) -> IPv4Address:
    return IPv4Address(socket.inet_ntoa(struct.pack("=L", int(word, 16))))
