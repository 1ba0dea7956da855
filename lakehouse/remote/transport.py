"""Run commands and operations on hosts by pyinfra, in the worker process.

Only this module and `pyinfra_operations` import pyinfra: a new major version changes two files.
"""

from __future__ import annotations

import logging
import shlex
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from click import unstyle
from gevent.lock import BoundedSemaphore
from paramiko import SSHException
from pyinfra.api.command import StringCommand
from pyinfra.api.config import Config
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host
from pyinfra.api.inventory import Inventory
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_host_op
from pyinfra.api.state import State
from pyinfra.context import ctx_host, ctx_state

from lakehouse.maybe import Answer, unknown
from plugins.module_utils.lakehouse.probes import AUTHORITY

# Seconds for the remote process after SIGTERM.
_GRACE_SECONDS = 2
_MOST_LINES = 5


class _Printed(logging.Handler):
    """Keeps what a command has printed: the error of a fact that could not be read does not say it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(unstyle(record.getMessage()))


_PRINTED = _Printed()
_LOG = logging.getLogger("pyinfra")
_LOG.addHandler(_PRINTED)
_LOG.propagate = False


class Hosts:
    """The hosts of a cluster by name, with pyinfra's data of each, and a connection timeout.

    `authority` has the PEM certificates that sign those of services; empty for the system's authorities.
    """

    def __init__(self, data: Mapping[str, Mapping[str, Any]], seconds: float) -> None:
        self._data, self._seconds = data, seconds
        self._state = self._state_of(data)
        # pyinfra has one current state per process.
        self._one_at_a_time = BoundedSemaphore()
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

    def operate(
        self, name: str, operations: Iterable[Mapping[str, Any]], *, check: bool
    ) -> Answer[list[str]]:
        """Bring things of a host into the desired states, one after the other; return those that differed.

        With `check` nothing is changed. Operations run as root, with sudo where needed.
        """
        # A state remembers the operations that it has run.
        with self._one_at_a_time:
            state = self._state_of({name: self._data[name]})
            host = state.inventory.get_host(name)
            _PRINTED.lines.clear()
            try:
                with ctx_state.use(state), ctx_host.use(host):
                    return _operated(state, host, operations, check=check)
            except (PyinfraError, SSHException, OSError, EOFError, ValueError) as error:
                return unknown("; ".join(_PRINTED.lines) or str(error) or type(error).__name__)
            finally:
                ctx_state.reset()
                ctx_host.reset()
                if host.connected:
                    host.disconnect()

    def _state_of(self, data: Mapping[str, Mapping[str, Any]]) -> State:
        inventory = Inventory(([(name, dict(variables)) for name, variables in data.items()], {}))
        return State(inventory, Config(CONNECT_TIMEOUT=self._seconds))


def _operated(
    state: State, host: Host, operations: Iterable[Mapping[str, Any]], *, check: bool
) -> Answer[list[str]]:
    # It would be a quarter of the worker's start, and most workers only ask questions.
    from lakehouse.remote.pyinfra_operations import BY_NAME  # noqa: PLC0415

    host.connect(show_errors=False, raise_exceptions=True)
    state.activate_host(host)
    _, identity = host.run_shell_command(StringCommand("id -u"))
    sudo = identity.stdout.strip() != "0"
    differing = []
    for operation in operations:
        name = operation["name"]
        result = add_op(state, BY_NAME[name], **operation["arguments"], _sudo=sudo)[host]
        if not result.will_change:
            continue
        differing.append(name)
        if not check and not run_host_op(state, host, host.op_hash_order[-1]):
            return unknown(" ".join((result.stderr or result.stdout).split()) or f"{name} has failed")
    return Answer(differing)
