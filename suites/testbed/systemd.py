"""Machines with systemd, reached by SSH."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import testinfra

from lakehouse.model import inventory
from suites.testbed.nodes import Ended, Nodes

_ANSIBLE_OPTIONS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")


class Shell(Protocol):
    """A way to run programs on a machine."""

    def run(self, host: str, command: str) -> tuple[int, str, str]:
        """Run a shell command as root; return status, standard output, standard error."""


class Ssh:
    """The way that Ansible takes, with its variables; each machine keeps one connection open."""

    def __init__(self, path: str) -> None:
        self._hosts = {host.name: host for host in inventory.load(path).hosts}
        self._connection = cache(self._connect)

    def run(self, host: str, command: str) -> tuple[int, str, str]:
        """Run a shell command as root; return status, standard output, standard error."""
        result = self._connection(host).run(command)
        return result.rc, result.stdout, result.stderr

    def _connect(self, name: str) -> Any:
        host = self._hosts[name]
        variables = host.variables
        user = variables.get("ansible_user", "root")
        return testinfra.get_host(
            f"ssh://{user}@{host.address}:{variables.get('ansible_port', 22)}",
            ssh_identity_file=variables.get("ansible_ssh_private_key_file"),
            ssh_extra_args=" ".join(str(variables[key]) for key in _ANSIBLE_OPTIONS if key in variables)
            or None,
            controlpersist=120,
            sudo=user != "root",
        )


class SystemdNodes(Nodes):
    """Each host is one machine, and its units are systemd's."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def places(self, host: str) -> Sequence[str]:
        """Return the host itself."""
        return (host,)

    def execute(self, place: str, argv: Sequence[str], user: str, environment: Mapping[str, str]) -> Ended:
        """Run a program as `user`."""
        settings = [f"{name}={value}" for name, value in environment.items()]
        identity = [] if user == "root" else ["runuser", "-u", user, "--"]
        return Ended(*self._shell.run(place, shlex.join([*identity, "env", *settings, *argv])))

    def is_running(self, host: str, unit: str) -> bool:
        """Tell whether systemd says that the unit is active."""
        return self._shell.run(host, shlex.join(["systemctl", "is-active", "--quiet", unit]))[0] == 0

    def start(self, host: str, unit: str) -> None:
        """Start a unit; it need not answer yet."""
        self.run(host, "systemctl", "start", unit)

    def stop(self, host: str, unit: str) -> None:
        """Stop a unit and wait until it has ended."""
        self.run(host, "systemctl", "stop", unit, seconds=90)

    def restart(self, host: str, unit: str) -> None:
        """Stop and start a unit; it need not answer yet."""
        self.run(host, "systemctl", "restart", unit, seconds=90)

    def kill(self, host: str, unit: str) -> None:
        """Kill a unit's processes; systemd starts it again."""
        self.run(host, "systemctl", "kill", "-s", "KILL", unit)

    def journal(self, host: str, unit: str, lines: int = 15) -> str:
        """Return the last lines that the unit logged."""
        return self.run(host, "journalctl", "-u", unit, "-n", str(lines), "--no-pager", "-o", "short-iso")
