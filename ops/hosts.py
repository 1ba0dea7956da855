"""How pyinfra reaches the hosts of an Ansible inventory: as Ansible does, and with no secret in the data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakehouse.inventory import Host

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


def connection(host: Host) -> dict[str, Any]:
    """Return pyinfra's data of a host, as plain strings and numbers: Ansible's own are more than that.

    A host whose key nobody knows is refused, as by Ansible; left alone, pyinfra would learn it.
    """
    variables = host.variables
    data: dict[str, Any] = {
        "ssh_hostname": host.address or host.name,
        "ssh_strict_host_key_checking": "yes",
    }
    data |= {word: kind(variables[name]) for name, (word, kind) in _VARIABLES.items() if name in variables}
    if _KEY in variables:
        data["ssh_key"] = str(Path(str(variables[_KEY])).expanduser())
    arguments = " ".join(str(variables[name]) for name in _ARGUMENTS if name in variables)
    data |= {_OPTIONS[name]: value for name, value in _options(arguments) if name in _OPTIONS}
    return data


def _options(arguments: str) -> Iterator[tuple[str, str]]:
    """Give each `-o Name=value`, or `-oName=value`, of a line for ssh."""
    for word in shlex.split(arguments):
        name, equals, value = word.removeprefix("-o").partition("=")
        if equals:
            yield name.strip().lower(), value.strip().strip('"')
