"""The names of the containers on this computer: HDFS sends its clients to DataNodes by name."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from lakehouse import inventory
from lakehouse.compose.settings import Settings

HOSTS = Path("/etc/hosts")
_BEGIN, _END = "# BEGIN lakehouse compose", "# END lakehouse compose"


def of(settings: Settings) -> list[str]:
    """Return the names that a client of HDFS and of the catalogs is sent to."""
    groups = ("namenode", "datanodes", "metastore", "trino_coordinator", "flink_jobmanager")
    hosts = inventory.load(settings.inventory).hosts
    return [host.name for host in hosts if host.groups & set(groups)]


def unknown(names: Sequence[str]) -> list[str]:
    """Return those that do not lead to this computer."""
    return [name for name in names if _address(name) != "127.0.0.1"]


def block(text: str, names: Sequence[str]) -> str:
    """Return the text of a hosts file in which the names lead to this computer, or without the block."""
    kept, before = [], ""
    for line in text.splitlines():
        # One line stands between the marks: if somebody has cut the second away, what follows is kept.
        if line not in (_BEGIN, _END) and before != _BEGIN:
            kept.append(line)
        before = line
    if names:
        kept += [_BEGIN, f"127.0.0.1 {' '.join(names)}", _END]
    return "\n".join(kept) + "\n"


def write(names: Sequence[str], path: Path = HOSTS) -> None:
    """Make the names lead to this computer, or forget them; OSError unless root does it.

    The file is written in place: in a container it is a mount, which cannot be replaced.
    """
    before = path.read_text("utf-8")
    after = block(before, names)
    if after != before:
        path.write_text(after, "utf-8")


def _address(name: str) -> str | None:
    try:
        return socket.gethostbyname(name)
    except OSError:
        return None
