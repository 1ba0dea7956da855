"""The address on which a server listens, and the errors of binding it."""

from __future__ import annotations

import errno
import socket
from typing import Any

from lakehouse.errors import LakehouseError, UsageError

LOOPBACK = "127.0.0.1"


def place(address: str, port: int, command: str) -> tuple[socket.AddressFamily, Any]:
    """Return family and socket address of a numeric address or of localhost, without name resolution.

    UsageError for any other name; `command` is the verb that listens.
    """
    numeric = LOOPBACK if address == "localhost" else address
    try:
        # An empty address would be every address.
        flags = socket.AI_NUMERICHOST
        family, *_, socket_address = socket.getaddrinfo(
            numeric or " ", port, type=socket.SOCK_STREAM, flags=flags
        )[0]
    except OSError as error:
        raise UsageError(f"{address!r} is no address", f"{command} --address {LOOPBACK}") from error
    return family, socket_address


def refused(address: str, port: int, free: int, error: OSError, command: str) -> LakehouseError:
    """Return the error of binding the address, with the option that avoids it; `free` is the default port."""
    options = {
        errno.EADDRINUSE: "--port 0",
        errno.EACCES: f"--port {free}",
        errno.EADDRNOTAVAIL: f"--address {LOOPBACK}",
    }
    option = options.get(error.errno or 0, "--port 0")
    return LakehouseError(f"port {port} of {address}: {error.strerror}", f"{command} {option}")
