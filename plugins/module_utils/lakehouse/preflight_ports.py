"""Whether the ports of this machine's services are free, or held by those very services.

Reads proc(5), so no tool needs to be there. Standard library only, and Python 3.9: this runs on the nodes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.lakehouse.findings import finding

LISTEN = "0A"
# The innermost unit of a path such as /system.slice/hdfs-namenode.service.
UNIT = re.compile(r".*/([^/]+\.(?:service|scope))")


class Socket(NamedTuple):
    """A listening socket and the user who opened it."""

    inode: str
    uid: int


class Process(NamedTuple):
    """A running process; ``unit`` is empty where systemd did not start it."""

    pid: int
    command: str
    uid: int
    unit: str
    folder: Path


def listeners(root: Path) -> dict[int, set[Socket]]:
    """Return the sockets that listen on each TCP port."""
    sockets: dict[int, set[Socket]] = {}
    for table in ("tcp", "tcp6"):
        path = root / "proc/net" / table
        for line in path.read_text(encoding="utf-8").splitlines()[1:] if path.is_file() else []:
            columns = line.split()
            local, state, uid, inode = columns[1], columns[3], columns[7], columns[9]
            if state == LISTEN:
                sockets.setdefault(int(local.rsplit(":", 1)[1], 16), set()).add(Socket(inode, int(uid)))
    return sockets


def running(root: Path) -> list[Process]:
    """Return all processes that did not end while we looked."""
    processes = []
    for folder in (root / "proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "comm").read_text(encoding="utf-8").strip()
            status = (folder / "status").read_text(encoding="utf-8")
            groups = (folder / "cgroup").read_text(encoding="utf-8").splitlines()
            uid = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:"))
            unit = next((match[1] for line in groups if (match := UNIT.match(line))), "")
            processes.append(Process(int(folder.name), command, uid, unit, folder))
    return processes


def holders(processes: list[Process], sockets: set[Socket]) -> list[Process]:
    """Return the processes with one of these sockets open."""
    links = {f"socket:[{socket.inode}]" for socket in sockets}
    return [process for process in processes if links & _open_files(process.folder)]


def _open_files(folder: Path) -> set[str]:
    targets = set()
    # Processes end and close files while we look.
    with suppress(OSError):
        for link in (folder / "fd").iterdir():
            with suppress(OSError):
                targets.add(str(link.readlink()))
    return targets


def is_ours(unit: str, sockets: set[Socket], held_by: list[Process], processes: list[Process]) -> bool:
    """Whether these sockets belong to the unit (a pattern).

    Where CAP_SYS_PTRACE is withheld, even root cannot see the open files of another user's process. Then it
    counts that the unit runs as the user who opened the socket.
    """
    if held_by:
        return any(fnmatch(process.unit, unit) for process in held_by)
    users = {process.uid for process in processes if fnmatch(process.unit, unit)}
    return any(socket.uid in users for socket in sockets)


def check_ports(root: Path, services: list[dict[str, Any]], ports: dict[str, int]) -> list[dict[str, str]]:
    """Check the ports of services given as ``unit`` (a pattern) and ``ports``, names in the port table."""
    listening = listeners(root)
    required = [
        (service["unit"], name, int(ports[name])) for service in services for name in service["ports"]
    ]
    clashes = [(unit, name, port) for unit, name, port in required if port in listening]
    processes = running(root) if clashes else []
    findings = []
    for unit, name, port in clashes:
        held_by = holders(processes, listening[port])
        if not is_ours(unit, listening[port], held_by, processes):
            fact = f"port {port} ({name}) is held by {_described(held_by, listening[port])}"
            advice = f"stop it, or change lakehouse_ports.{name}"
            findings.append(finding("net.ports", fact, advice, f"free, or held by {unit}"))
    return findings


def _described(held_by: list[Process], sockets: set[Socket]) -> str:
    if not held_by:
        return f"a process of user id {min(socket.uid for socket in sockets)}"
    first = held_by[0]
    return f"{first.command}, pid {first.pid}" + (f" of {first.unit}" if first.unit else "")
