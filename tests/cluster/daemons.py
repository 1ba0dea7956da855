"""The units that the kit places on hosts, as systemd and the kernel see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import NamedTuple

from lakehouse.model import services
from tests.cluster.machines import Machine

_JOURNAL_LINES = 30


class Listener(NamedTuple):
    """A TCP socket that waits for connections; the address is `*` where it takes them on all."""

    address: str
    port: int


@dataclass(frozen=True)
class Placed:
    """On the hosts of `group` runs `unit` (a pattern) with these ports, as a user or an account."""

    group: str
    unit: str
    ports: tuple[str, ...]
    user: str | None
    account: str | None

    @property
    def name(self) -> str:
        """Such as `hdfs-namenode`, or `postgresql`."""
        return self.unit.removesuffix(".service").partition("@")[0]


def spark_defaults(machine: Machine) -> dict[str, str]:
    """The properties of Spark that every program on a machine starts with."""
    text = machine.run("cat %s/spark/spark-defaults.conf", machine.variable("lakehouse_config_dir"))
    return dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))


def placements() -> list[Placed]:
    """Every service that is always on, once for each of its groups."""
    return [
        Placed(
            group,
            f"{row.unit}.service",
            tuple(listener.name for listener in row.listeners),
            row.user,
            row.account,
        )
        for row in services.load().services.values()
        if row.switch is None
        for group in row.groups
    ]


class Daemon:
    """One unit on one machine. What was seen once is kept, except by `main_pid`."""

    def __init__(self, machine: Machine, placed: Placed) -> None:
        self.machine = machine
        self.placed = placed

    @cached_property
    def properties(self) -> dict[str, str]:
        """What `systemctl show` says."""
        shown = self.machine.run("systemctl show --all %s", self.placed.unit)
        return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)

    @property
    def unit(self) -> str:
        """The unit's full name."""
        return self.properties["Id"]

    @property
    def pid(self) -> str:
        """The main process."""
        return self.properties["MainPID"]

    @property
    def user(self) -> str:
        """The Unix user that the inventory gives it, or the account that no inventory renames."""
        return self.placed.account or str(self.machine.variable("lakehouse_users")[self.placed.user])

    @property
    def is_ours(self) -> bool:
        """Whether the kit writes the whole unit; PostgreSQL's is Debian's with some settings added."""
        return self.user != "postgres"

    @property
    def is_member(self) -> bool:
        """Whether it is a JVM that reads and writes tables, in the group of the lakehouse."""
        return self.placed.account is None

    @cached_property
    def status(self) -> dict[str, str]:
        """/proc/<pid>/status of the main process."""
        lines = self.machine.run("cat /proc/%s/status", self.pid).splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def open_files(self, pid: str) -> int:
        """The hard limit of open files under which a process really runs."""
        line = self.machine.run("grep '^Max open files' /proc/%s/limits", pid)
        return int(line.split()[4])

    def as_itself(self, command: str, *arguments: object) -> str:
        """Run a command as the daemon's user: in a container, root may not look into its processes."""
        return self.machine.run(f"runuser -u %s -- {command}", self.user, *arguments)

    def listeners(self) -> set[Listener]:
        """The sockets of the unit's control group."""
        rows = (line.split() for line in self.machine.run("ss -Hltne").splitlines())
        return {_listener(row[3]) for row in rows if any(word.endswith(f"/{self.unit}") for word in row[5:])}

    def main_pid(self) -> str:
        """The main process as of now; 0 where none runs."""
        return self.machine.run("systemctl show --property=MainPID --value %s", self.placed.unit)

    def journal(self) -> str:
        """The last lines that the unit logged."""
        return self.machine.run("journalctl --no-pager -o cat -n %s -u %s", _JOURNAL_LINES, self.placed.unit)


def _listener(text: str) -> Listener:
    """Read `ss`'s local address: 10.0.0.1:80, 0.0.0.0:80, *:80, [::]:80, [::ffff:10.0.0.1]:80."""
    name, _, port = text.rpartition(":")
    name = name.strip("[]").partition("%")[0].removeprefix("::ffff:")
    everywhere = name == "*" or ip_address(name).is_unspecified
    return Listener("*" if everywhere else name, int(port))
