"""How pyinfra and ssh reach the hosts of an inventory: as Ansible does, and with no secret in the data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakehouse.inventory import Host
from plugins.module_utils.lakehouse.probes import AUTHORITY

# pyinfra's word by Ansible's variable, with its type, and by OpenSSH's option. Jump hosts it reads from
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
# A host that says nothing is given up: at the start, and later.
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
    """Return pyinfra's data of a host, as plain strings and numbers: Ansible's own are more than that.

    A host whose key is unknown is refused, as by Ansible; left alone, pyinfra would learn it.
    """
    variables = host.variables
    data: dict[str, Any] = {
        "ssh_hostname": host.address or host.name,
        "ssh_strict_host_key_checking": "yes",
    }
    data |= {word: kind(variables[name]) for name, (word, kind) in _VARIABLES.items() if name in variables}
    if variables.get(AUTHORITY):
        data[AUTHORITY] = str(variables[AUTHORITY])
    if _KEY in variables:
        data["ssh_key"] = str(Path(str(variables[_KEY])).expanduser())
    arguments = " ".join(str(variables[name]) for name in _ARGUMENTS if name in variables)
    data |= {_OPTIONS[name]: value for name, value in _options(arguments) if name in _OPTIONS}
    return data


def ssh(host: Host, *, terminal: bool = False) -> list[str]:
    """Return the command line of ssh for a host, without what it is to run there.

    What the inventory says comes first, since ssh takes the first of two values. Nothing is asked: a key
    that is unknown, or a password, ends it.
    """
    variables = host.variables
    words = [word for name in _ARGUMENTS for word in shlex.split(str(variables.get(name, "")))]
    named = {"-p": "ansible_port", "-l": "ansible_user", "-i": _KEY}
    for option, name in named.items():
        words += [option, str(variables[name])] if name in variables else []
    kept = [word for name, value in _SSH.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-tt" if terminal else "-T", *words, *kept, "--", host.address or host.name]


def as_root(script: str) -> str:
    """Return the line that runs a script as root, as the playbooks do: by sudo where that is needed.

    It takes the place of the shell that runs the line.
    """
    return f'as=; [ "$(id -u)" = 0 ] || as="sudo -n"; exec $as sh -c {shlex.quote(script)}'


def as_unit(unit: str, script: str) -> str:
    """Return the line that has systemd run a script as root, as a unit of its own, and waits for its end."""
    return f"systemd-run --quiet --collect --wait --pipe --unit={unit} sh -c {shlex.quote(script)}"


def ping(inventory: object, host: str) -> str:
    """Return the command that asks whether Ansible reaches a host at all."""
    return f".venv/bin/ansible -i {inventory} {host} -m ping"


def _options(arguments: str) -> Iterator[tuple[str, str]]:
    """Give each `-o Name=value`, or `-oName=value`, of a line for ssh."""
    for word in shlex.split(arguments):
        name, equals, value = word.removeprefix("-o").partition("=")
        if equals:
            yield name.strip().lower(), value.strip().strip('"')
