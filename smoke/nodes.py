"""The machines of the cluster: units, journals, SQL and programs on them, whatever way leads there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

import testinfra

from lakehouse import inventory

_ANSIBLE_OPTIONS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")


class CommandError(Exception):
    """A command on a machine ended with another status than 0: where, what, and its last words."""


class Shell(Protocol):
    """A way to run programs on a machine; a container engine would be another one than SSH."""

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


class Nodes:
    """What the tests do to machines."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def run(
        self,
        host: str,
        *argv: str,
        user: str | None = None,
        environment: Mapping[str, str] | None = None,
        seconds: int = 60,
    ) -> str:
        """Run a program, as root or as `user`, for at most `seconds`; return what it prints.

        Raises CommandError when it fails.
        """
        settings = [f"{name}={value}" for name, value in (environment or {}).items()]
        identity = ["runuser", "-u", user, "--"] if user else []
        command = shlex.join([*identity, "env", *settings, "timeout", str(seconds), *argv])
        status, output, error = self._shell.run(host, command)
        if status != 0:
            raise CommandError(
                f"{host}: {shlex.join(argv)[:200]}: status {status}: {(error or output)[-1500:]}"
            )
        return output

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

    @contextmanager
    def stopped(self, host: str, unit: str) -> Iterator[None]:
        """Keep a unit stopped for the length of the block, whatever happens in it."""
        self.stop(host, unit)
        try:
            yield
        finally:
            self.start(host, unit)

    def journal(self, host: str, unit: str, lines: int = 15) -> str:
        """Return the last lines that the unit logged."""
        return self.run(host, "journalctl", "-u", unit, "-n", str(lines), "--no-pager", "-o", "short-iso")

    def select(self, host: str, database: str, query: str) -> list[dict[str, Any]]:
        """Ask PostgreSQL as its owner; each row is a dict by column."""
        statement = f"SELECT coalesce(json_agg(row), '[]') FROM ({query}) AS row"
        answer = self.run(host, "psql", "-d", database, "-XAtqc", statement, user="postgres")
        return list(json.loads(answer))
