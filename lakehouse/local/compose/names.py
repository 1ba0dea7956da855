"""The names of the containers on this computer: HDFS sends its clients to DataNodes by name."""

from __future__ import annotations

import socket
from pathlib import Path

from lakehouse.local.compose.dotenv import (
    DATANODES_VARIABLE,
    DEFAULT_FILE,
    LOOPBACK,
    THREE_DATANODES,
    Settings,
)
from lakehouse.model import inventory

HOSTS = Path("/etc/hosts")
_BEGIN, _END = "# BEGIN lakehouse compose", "# END lakehouse compose"


def of(settings: Settings) -> str:
    """Return the line of a hosts file: where the ports are, and the names that clients are sent to."""
    groups = ("namenode", "datanodes", "metastore", "trino_coordinator", "flink_jobmanager")
    hosts = inventory.load(settings.inventory).hosts
    return " ".join([settings.published, *(host.name for host in hosts if host.groups & set(groups))])


def unknown(entry: str) -> list[str]:
    """Return the names of the line that do not lead to its address."""
    address, *names = entry.split()
    return [name for name in names if _address(name) != address]


def command(settings: Settings) -> str:
    """Return the command that writes these names; sudo removes the environment, so it has the variables."""
    variables = {
        DATANODES_VARIABLE: "3" if THREE_DATANODES in settings.profiles else "",
        "ENV_FILE": "" if settings.file == DEFAULT_FILE else str(settings.file),
        "BIND_ADDRESS": "" if settings.published == LOOPBACK else settings.published,
    }
    assignments = [f"{name}={value}" for name, value in variables.items() if value]
    return " ".join(["sudo make compose-names", *assignments])


def block(text: str, entry: str) -> str:
    """Return the text of a hosts file with the line between two marks, or without the block."""
    lines, previous = [], ""
    for line in text.splitlines():
        # One line is between the marks: if the second mark is missing, the lines after it stay.
        if line not in (_BEGIN, _END) and previous != _BEGIN:
            lines.append(line)
        previous = line
    if entry:
        lines += [_BEGIN, entry, _END]
    return "\n".join(lines) + "\n"


def write(entry: str, path: Path = HOSTS) -> None:
    """Write the line, or forget it where it is empty; OSError unless root does it.

    The file is written in place: in a container it is a mount, which cannot be replaced.
    """
    before = path.read_text("utf-8")
    after = block(before, entry)
    if after != before:
        path.write_text(after, "utf-8")


def _address(name: str) -> str | None:
    try:
        return socket.gethostbyname(name)
    except OSError:
        return None
