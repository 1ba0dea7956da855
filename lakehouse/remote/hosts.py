"""Connections of pyinfra and ssh to the hosts of an inventory, with Ansible's variables and no secrets."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakehouse.model.inventory import Host
from plugins.module_utils.lakehouse.probes import AUTHORITY

# pyinfra's keys by Ansible's variable, with the type, and by OpenSSH's option. pyinfra reads jump hosts from
# ~/.ssh/config.
_VARIABLES: dict[str, tuple[str, type[int] | type[str]]] = {
    "ansible_port": ("ssh_port", int),
    "ansible_user": ("ssh_user", str),
}
_KEY = "ansible_ssh_private_key_file"
_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_OPTIONS = {
    "userknownhostsfile": "ssh_known_hosts_file",
    "stricthostkeychecking": "ssh_strict_host_key_checking",
}
# Timeouts of a host that does not answer: of the connection, and later.
CONNECT_SECONDS = 5
_SSH = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": CONNECT_SECONDS,
    "ServerAliveInterval": 5,
    "ServerAliveCountMax": 3,
    "LogLevel": "ERROR",
}


def connection(host: Host) -> dict[str, Any]:
    """Return pyinfra's data of a host, with Ansible's values converted to plain strings and numbers.

    A host with an unknown key is refused, as by Ansible; by default pyinfra would accept it.
    """
    variables = host.variables
    data: dict[str, Any] = {
        "ssh_hostname": host.address or host.name,
        "ssh_strict_host_key_checking": "yes",
    }
    data |= {key: kind(variables[name]) for name, (key, kind) in _VARIABLES.items() if name in variables}
    if variables.get(AUTHORITY):
        data[AUTHORITY] = str(variables[AUTHORITY])
    if _KEY in variables:
        data["ssh_key"] = str(Path(str(variables[_KEY])).expanduser())
    arguments = " ".join(str(variables[name]) for name in _ARGUMENTS if name in variables)
    data |= {_OPTIONS[name]: value for name, value in _options(arguments) if name in _OPTIONS}
    return data


def ssh(host: Host, *, terminal: bool = False) -> list[str]:
    """Return the command line of ssh for a host, without the remote command.

    Options of the inventory come first, since ssh uses the first of two values. It never prompts: an unknown
    key, or a password, ends it.
    """
    variables = host.variables
    words = [word for name in _ARGUMENTS for word in shlex.split(str(variables.get(name, "")))]
    options = {"-p": "ansible_port", "-l": "ansible_user", "-i": _KEY}
    for option, name in options.items():
        words += [option, str(variables[name])] if name in variables else []
    defaults = [word for name, value in _SSH.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-tt" if terminal else "-T", *words, *defaults, "--", host.address or host.name]


def as_root(script: str) -> str:
    """Return the line that runs a script as root, with sudo where needed, as the playbooks do.

    It replaces the shell that runs the line.
    """
    return f'as=; [ "$(id -u)" = 0 ] || as="sudo -n"; exec $as sh -c {shlex.quote(script)}'


def as_unit(unit: str, script: str) -> str:
    """Return the line that runs a script as root in a transient unit of systemd, and waits for its end."""
    return f"systemd-run --quiet --collect --wait --pipe --unit={unit} sh -c {shlex.quote(script)}"


def ping(inventory: object, host: str) -> str:
    """Return the command that checks whether Ansible can reach a host."""
    return f".venv/bin/ansible -i {inventory} {host} -m ping"


def _options(arguments: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each `-o Name=value`, or `-oName=value`, in arguments of ssh."""
    for word in shlex.split(arguments):
        name, equals, value = word.removeprefix("-o").partition("=")
        if equals:
            yield name.strip().lower(), value.strip().strip('"')
