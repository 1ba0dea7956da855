"""Read and write the NameNode's list of DataNodes, and read their states."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.maybe import Answer
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Stopped
from plugins.module_utils.lakehouse import hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.datanode_lists import DEAD, LEAVING, LIVE, members
from plugins.module_utils.lakehouse.hdfs_hosts import Entry

# As the role writes it: hdfs_namenode_hosts_file.
_FILE = "{config}/hadoop/namenode/datanodes.json"
_SECONDS = 60.0
SERVES, AWAY, LEFT = "In Service", "In Maintenance", "Decommissioned"
# States of a DataNode that leaves or has left.
GOING = ("Decommission In Progress", LEFT)


@dataclass(frozen=True)
class Node:
    """A DataNode: its state as the NameNode names it, and its free bytes."""

    state: str
    remaining: int


@dataclass(frozen=True)
class PendingBlocks:
    """The blocks that a leaving DataNode waits for: under-replicated ones, and those of open files."""

    blocks: int
    open: int

    def __str__(self) -> str:
        singular, plural = "of an open file: it moves", "of open files: they move"
        suffix = f", {counted(self.open, singular, plural)} when writers end" if self.open else ""
        return f"{counted(self.blocks, 'block has', 'blocks have')} too few replicas elsewhere{suffix}"


def entries(living: Living) -> list[Entry]:
    """Return the entries of the list; Stopped where it is missing or invalid."""
    namenode, path = _place(living)
    answer = living.do(namenode, f"cat {shlex.quote(path)}", _SECONDS).then(hdfs_hosts.read)
    if answer.value is None:
        site = f".venv/bin/ansible-playbook -i {living.cluster.inventory.path} playbooks/site.yml --tags hdfs"
        raise Stopped(Ending.FAILED, f"{path} on {namenode}: {answer.why}", site)
    return answer.value


def write(living: Living, new_entries: list[Entry]) -> None:
    """Replace the list atomically, and make the NameNode read it."""
    namenode, path = _place(living)
    temporary = shlex.quote(f"{path}.new")
    script = (
        f"set -e; printf %s {shlex.quote(hdfs_hosts.written(new_entries))} > {temporary}\n"
        f"chmod 644 {temporary}; sync {temporary}\n"
        f"mv {temporary} {shlex.quote(path)}; {living.as_hdfs('hdfs dfsadmin -refreshNodes')}"
    )
    answer = living.do(namenode, script, _SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode has not read its list: {answer.why}", "")


def state(living: Living, host: str) -> Answer[str]:
    """Return the state of a DataNode as the NameNode names it; unknown for an unlisted one."""
    return living.bean("NameNodeInfo").then(lambda bean: states(bean)[host])


def states(bean: Mapping[str, Any]) -> dict[str, str]:
    """Return the state of each DataNode in the NameNode's bean, live and dead, by name."""
    return {name: str(row.get("adminState", "Dead")) for name, row in members(bean, DEAD, LIVE).items()}


def nodes(bean: Mapping[str, Any]) -> dict[str, Node]:
    """Return the live DataNodes by name."""
    return {
        name: Node(str(row["adminState"]), int(row["remaining"])) for name, row in members(bean, LIVE).items()
    }


def pending(bean: Mapping[str, Any], host: str) -> PendingBlocks:
    """Return the pending blocks of a leaving DataNode; KeyError where it is not listed as leaving."""
    row = members(bean, LEAVING)[host]
    return PendingBlocks(int(row["underReplicatedBlocks"]), int(row["underReplicateInOpenFiles"]))


def _place(living: Living) -> tuple[str, str]:
    host = living.cluster.active("namenode")
    return host.name, _FILE.format(config=host.variables["lakehouse_config_dir"])
