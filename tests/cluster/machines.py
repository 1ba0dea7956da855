"""The machines of an inventory, reached the way Ansible reaches them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import testinfra
from docker.models.containers import Container

from lakehouse.local.nodes import docker_api
from lakehouse.model.inventory import Host, Inventory
from suites.testbed.namenode import NameNode

_ANSIBLE_OPTIONS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_LISTING = (
    "find %s -printf '%%p %%M %%u %%g %%s %%T@ %%l\\n' | sort && find %s -type f -exec sha256sum {} + | sort"
)


class Machine:
    """A host of the inventory, and programs run on it as root over one connection that stays open."""

    def __init__(self, host: Host, sockets: Path) -> None:
        self.host = host
        variables = host.variables
        user = variables.get("ansible_user", "root")
        options = [f"-o ControlMaster=auto -o ControlPersist=120 -o ControlPath={sockets}/%C"]
        options += [str(variables[name]) for name in _ANSIBLE_OPTIONS if name in variables]
        self.shell: Any = testinfra.get_host(
            f"ssh://{user}@{host.address}:{variables.get('ansible_port', 22)}",
            ssh_identity_file=variables.get("ansible_ssh_private_key_file"),
            ssh_extra_args=" ".join(options),
            sudo=user != "root",
        )

    @property
    def name(self) -> str:
        """The inventory's name of the host."""
        return self.host.name

    def variable(self, name: str) -> Any:
        """A variable of the inventory, evaluated."""
        return self.host.variables[name]

    def run(self, command: str, *arguments: object) -> str:
        """What a command prints; each `%s` is one quoted argument. Raises AssertionError when it fails."""
        return str(self.shell.check_output(command, *map(str, arguments)))

    def listing(self, path: str) -> str:
        """Everything below a path: names, owners, modes, times and checksums."""
        return self.run(_LISTING, path, path)

    @contextmanager
    def scratch(self, name: str) -> Iterator[str]:
        """A directory beside the cluster's own data, empty at first and gone at the end."""
        path = f"{self.variable('lakehouse_data_dir')}/{name}"
        self.run("rm -rf %s && mkdir -p %s", path, path)
        try:
            yield path
        finally:
            self.run("rm -rf %s", path)

    @contextmanager
    def transient(self, unit: str) -> Iterator[None]:
        """What `systemd-run` starts under this name in the block ends with it; nothing is left of it."""
        try:
            yield
        finally:
            self.shell.run("systemctl stop %s; systemctl reset-failed %s", unit, unit)


Machines = Mapping[str, Machine]


@contextmanager
def container_of(host: Host) -> Iterator[Container]:
    """The container that a local node is."""
    with docker_api.connect() as client:
        found = docker_api.containers(client, host.variables["local_nodes_cluster"])
        yield next(one for one in found if one.labels[docker_api.NODE_LABEL] == host.name)


def kill(host: Host) -> None:
    """As when the power of a local node fails: nothing on it is told."""
    with container_of(host) as container:
        container.kill()


@contextmanager
def reached(cluster: Inventory) -> Iterator[Machines]:
    """Every host by name, with connections that stay open within the block."""
    # Not pytest's folder: the path of a socket has at most 108 characters.
    sockets = Path(tempfile.mkdtemp(prefix="kit-"))
    try:
        yield {host.name: Machine(host, sockets) for host in cluster.hosts}
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def namenode_of(cluster: Inventory) -> NameNode:
    """Return the NameNode of a cluster, asked as its superuser."""
    [host] = cluster.group("namenode")
    port, users = host.variables["lakehouse_ports"]["namenode_http"], host.variables["lakehouse_users"]
    return NameNode(f"http://{host.address}:{port}", users["hdfs"])
