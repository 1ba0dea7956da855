"""Where a verb that answers others listens, and why it cannot."""

from __future__ import annotations

import errno
import socket
from typing import Any

from lakehouse.errors import LakehouseError, UsageError

LOOPBACK = "127.0.0.1"


def place(address: str, port: int, command: str) -> tuple[socket.AddressFamily, Any]:
    """Return family and socket address of an address, or of localhost; no resolver is asked for other names.

    UsageError for another word; `command` is the verb that listens.
    """
    numeric = LOOPBACK if address == "localhost" else address
    try:
        # An empty one would be every address.
        flags = socket.AI_NUMERICHOST
        family, *_, found = socket.getaddrinfo(numeric or " ", port, type=socket.SOCK_STREAM, flags=flags)[0]
    except OSError as error:
        raise UsageError(f"{address!r} is no address", f"{command} --address {LOOPBACK}") from error
    return family, found


def refused(address: str, port: int, free: int, error: OSError, command: str) -> LakehouseError:
    """Return why no server can listen there, with the option that helps; `free` is the verb's own port."""
    other = {
        errno.EADDRINUSE: "--port 0",
        errno.EACCES: f"--port {free}",
        errno.EADDRNOTAVAIL: f"--address {LOOPBACK}",
    }
    option = other.get(error.errno or 0, "--port 0")
    return LakehouseError(f"port {port} of {address}: {error.strerror}", f"{command} {option}")
