"""Runs a command on hosts by pyinfra. No other module imports it: a new major version changes this file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from paramiko import SSHException
from pyinfra.api.command import StringCommand
from pyinfra.api.config import Config
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State

from ops.maybe import Answer, unknown
from plugins.module_utils.lakehouse.probes import AUTHORITY

# What the remote side has after it was told to end.
_GRACE_SECONDS = 2


class Hosts:
    """The hosts of a cluster by name, with pyinfra's data of each, and a limit for each connection.

    `authority` signs the certificates of services, in PEM; empty where the system's authorities do.
    """

    def __init__(self, data: Mapping[str, Mapping[str, Any]], seconds: float) -> None:
        inventory = Inventory(([(name, dict(own)) for name, own in data.items()], {}))
        self._state = State(inventory, Config(CONNECT_TIMEOUT=seconds))
        self.authority = next((str(own[AUTHORITY]) for own in data.values() if own.get(AUTHORITY)), "")

    def run(self, name: str, script: str, seconds: float) -> Answer[str]:
        """Return what a shell script prints on a host; the host itself ends it after `seconds`."""
        host = self._state.inventory.get_host(name)
        # pyinfra's own limit stops reading and leaves the process behind.
        command = f"timeout -k {_GRACE_SECONDS} {seconds:.1f} sh -c {shlex.quote(script)}"
        try:
            host.connect(show_errors=False, raise_exceptions=True)
            succeeded, output = host.run_shell_command(StringCommand(command))
        except (PyinfraError, SSHException, OSError, EOFError) as error:
            # Perhaps the host has restarted: the next question makes a connection of its own.
            host.connected = False
            return unknown(str(error) or type(error).__name__)
        # What was printed before the limit is worth reading.
        if not succeeded and not output.stdout:
            return unknown(output.stderr or f"it did not end in {seconds:.1f} s")
        return Answer(output.stdout)
