"""Run a command on hosts by pyinfra, which no other module imports: a new major version changes one file."""

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

from lakehouse.maybe import Answer, unknown
from plugins.module_utils.lakehouse.probes import AUTHORITY

# Seconds for the remote process after SIGTERM.
_GRACE_SECONDS = 2


class Hosts:
    """The hosts of a cluster by name, with pyinfra's data of each, and a connection timeout.

    `authority` has the PEM certificates that sign those of services; empty for the system's authorities.
    """

    def __init__(self, data: Mapping[str, Mapping[str, Any]], seconds: float) -> None:
        inventory = Inventory(([(name, dict(variables)) for name, variables in data.items()], {}))
        self._state = State(inventory, Config(CONNECT_TIMEOUT=seconds))
        self.authority = next(
            (str(variables[AUTHORITY]) for variables in data.values() if variables.get(AUTHORITY)), ""
        )

    def run(self, name: str, script: str, seconds: float) -> Answer[str]:
        """Return the output of a shell script on a host, which ends it after `seconds`."""
        host = self._state.inventory.get_host(name)
        # pyinfra's timeout stops reading, but not the process.
        command = f"timeout -k {_GRACE_SECONDS} {seconds:.1f} sh -c {shlex.quote(script)}"
        try:
            host.connect(show_errors=False, raise_exceptions=True)
            succeeded, output = host.run_shell_command(StringCommand(command))
        except (PyinfraError, SSHException, OSError, EOFError) as error:
            # The host may have restarted: the next question opens a new connection.
            host.connected = False
            return unknown(str(error) or type(error).__name__)
        # Output before the timeout is returned.
        if not succeeded and not output.stdout:
            return unknown(output.stderr or f"it did not end in {seconds:.1f} s")
        return Answer(output.stdout)
