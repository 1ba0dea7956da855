"""A metastore beside the cluster's: on its host, with its release and a changed copy of its configuration."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from thrift.Thrift import TException

from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine
from tests.cluster.metastore_port import connected

SECONDS = 60
_CREDENTIALS = "hadoop.security.credential.provider.path"
_FREE_PORTS = """
import socket, sys
servers = [socket.create_server(("", 0)) for _ in range(int(sys.argv[1]))]
print(*(server.getsockname()[1] for server in servers))
"""


def free_ports(machine: Machine, count: int) -> list[int]:
    """Return TCP ports of a machine that nothing listens on."""
    return [int(port) for port in machine.run("python3 -c %s %s", _FREE_PORTS, count).split()]


def command_of(machine: Machine) -> list[str]:
    """Return the command of the cluster's metastore: Java, its options, the main class and its arguments.

    Without the agent of its metrics, whose port is taken.
    """
    unit = machine.run("systemctl show --property=ExecStart --value hive-metastore")
    words = shlex.split(unit.partition("argv[]=")[2].partition(" ; ")[0])
    return [word for word in words if not word.startswith("-javaagent:")]


def run(machine: Machine, argv: Sequence[object]) -> str:
    """Run a command whose arguments no shell reads; return what it prints."""
    return machine.run(" ".join(["%s"] * len(argv)), *argv)


@contextmanager
def running(
    machine: Machine,
    unit: str,
    settings: Mapping[str, str | None],
    *,
    main: str | None = None,
    password: str | None = None,
) -> Iterator[int]:
    """Run a metastore in the block, on the port that it yields.

    `settings` are those of hive-site.xml that differ, None removes one. `main` replaces the main class,
    `password` the database's.
    """
    config = f"{machine.variable('lakehouse_config_dir')}/hive"
    user, group = machine.variable("lakehouse_users")["hive"], machine.variable("lakehouse_group")
    environment = machine.run("systemctl show --property=Environment --value hive-metastore")
    [port] = free_ports(machine, 1)
    folder = machine.run("mktemp -d")
    try:
        machine.run("cp %s/* %s/", config, folder)
        if password:
            settings = {**settings, _CREDENTIALS: f"json:{folder}/credentials.json"}
            secret = json.dumps({"javax.jdo.option.ConnectionPassword": password})
            machine.run("printf %%s %s > %s/credentials.json", secret, folder)
        site = _changed(machine.run("cat %s/hive-site.xml", folder), settings)
        machine.run("printf %%s %s > %s/hive-site.xml && chown -R %s %s", site, folder, user, folder)
        command = command_of(machine)
        classpath = command.index("-cp") + 1
        command[classpath] = f"{folder}:{command[classpath]}"
        command[-3:] = [main or command[-3], "-p", str(port)]
        options = [f"--uid={user}", f"--gid={group}", "--property=UMask=0002"]
        options += [f"--setenv={variable}" for variable in shlex.split(environment)]
        with machine.transient(unit):
            run(machine, ["systemd-run", "--quiet", "--collect", f"--unit={unit}", *options, *command])
            wait_for(f"the metastore {unit}", lambda: _answers(machine, port), seconds=SECONDS)
            yield port
    finally:
        machine.run("rm -rf %s", folder)


def _changed(site: str, changes: Mapping[str, str | None]) -> str:
    root = ET.fromstring(site)
    for element in list(root):
        if element.findtext("name") in changes:
            root.remove(element)
    for name, value in changes.items():
        if value is not None:
            element = ET.SubElement(root, "property")
            ET.SubElement(element, "name").text = name
            ET.SubElement(element, "value").text = value
    return ET.tostring(root, encoding="unicode")


def _answers(machine: Machine, port: int) -> bool:
    with suppress(OSError, TException), connected(machine.host.address, port, None) as client:
        return bool(client.get_all_databases())
    return False
