"""Writes the NameNode's list of DataNodes, and asks what has become of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ops.change.facts import Living
from ops.change.result import Ending, Stopped
from ops.maybe import Answer
from plugins.module_utils.lakehouse import hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.datanode_lists import DEAD, LEAVING, LIVE, members
from plugins.module_utils.lakehouse.hdfs_hosts import Entry

# As the role writes it: hdfs_namenode_hosts_file.
_FILE = "{config}/hadoop/namenode/datanodes.json"
_SECONDS = 60.0
SERVES, AWAY, LEFT = "In Service", "In Maintenance", "Decommissioned"
# Of one that leaves, or has.
GOING = ("Decommission In Progress", LEFT)


@dataclass(frozen=True)
class Node:
    """A DataNode: its state in the NameNode's words, and what is free, in bytes."""

    state: str
    remaining: int


@dataclass(frozen=True)
class Moving:
    """What keeps a DataNode that leaves: blocks with too few replicas elsewhere, and those of open files."""

    blocks: int
    open: int

    def __str__(self) -> str:
        one, several = "of an open file: it moves", "of open files: they move"
        waits = f", {counted(self.open, one, several)} when writers end" if self.open else ""
        return f"{counted(self.blocks, 'block has', 'blocks have')} too few replicas elsewhere{waits}"


def entries(living: Living) -> list[Entry]:
    """Return the list; Stopped where it is not there, or cannot be read."""
    namenode, path = _place(living)
    found = living.do(namenode, f"cat {shlex.quote(path)}", _SECONDS).then(hdfs_hosts.read)
    if found.value is None:
        site = f".venv/bin/ansible-playbook -i {living.cluster.inventory.path} playbooks/site.yml --tags hdfs"
        raise Stopped(Ending.FAILED, f"{path} on {namenode}: {found.why}", site)
    return found.value


def write(living: Living, wanted: list[Entry]) -> None:
    """Replace the list, whole or not at all, and have the NameNode read it."""
    namenode, path = _place(living)
    new = shlex.quote(f"{path}.new")
    script = (
        f"set -e; printf %s {shlex.quote(hdfs_hosts.written(wanted))} > {new}; chmod 644 {new}; sync {new}\n"
        f"mv {new} {shlex.quote(path)}; {living.as_hdfs('hdfs dfsadmin -refreshNodes')}"
    )
    done = living.do(namenode, script, _SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode has not read its list: {done.why}", "")


def state(living: Living, host: str) -> Answer[str]:
    """Return the state of a DataNode in the NameNode's words; unknown while it does not know one."""
    return living.bean("NameNodeInfo").then(lambda bean: known(bean)[host])


def known(bean: Mapping[str, Any]) -> dict[str, str]:
    """Read the DataNodes of the NameNode's bean, live and dead, by name: what state each is in."""
    return {name: str(row.get("adminState", "Dead")) for name, row in members(bean, DEAD, LIVE).items()}


def nodes(bean: Mapping[str, Any]) -> dict[str, Node]:
    """Read the DataNodes that live, by name."""
    return {
        name: Node(str(row["adminState"]), int(row["remaining"])) for name, row in members(bean, LIVE).items()
    }


def moving(bean: Mapping[str, Any], host: str) -> Moving:
    """Read what keeps a DataNode that leaves; KeyError where the NameNode does not list it among them."""
    row = members(bean, LEAVING)[host]
    return Moving(int(row["underReplicatedBlocks"]), int(row["underReplicateInOpenFiles"]))


def _place(living: Living) -> tuple[str, str]:
    host = living.cluster.active("namenode")
    return host.name, _FILE.format(config=host.variables["lakehouse_config_dir"])
