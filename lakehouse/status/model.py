"""The status of a cluster: each value is known, or unknown with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakehouse.maybe import Answer
from plugins.module_utils.lakehouse.away import Mark

RUNNING = "running"
# systemd's active states, as printed.
_WORDS = {
    "active": RUNNING,
    "reloading": RUNNING,
    "inactive": "stopped",
    "activating": "starting",
    "deactivating": "stopping",
}
# States of a unit that an operator stopped or that is missing: `site.yml` starts it.
STOPPED = frozenset({"stopped", "absent"})


@dataclass(frozen=True)
class Unit:
    """A systemd unit: its states, main PID, number of restarts, and since when it is active.

    `enabled` is false only where systemd reports the unit as disabled.
    """

    load: str
    active: str
    sub: str
    pid: int
    restarts: int
    since: float | None
    enabled: bool = True

    @property
    def word(self) -> str:
        """The state in a word, such as running, stopped or failed; absent for a missing unit."""
        return "absent" if self.load == "not-found" else _WORDS.get(self.active, self.active)


@dataclass(frozen=True)
class Disk:
    """The file system below a folder, in bytes."""

    folder: str
    size: int
    available: int


@dataclass(frozen=True)
class Memory:
    """Memory of a machine, in bytes."""

    total: int
    available: int


@dataclass(frozen=True)
class Machine:
    """A host. `offset` is the least possible difference of its clock to this machine's, in seconds."""

    name: str
    address: str
    answer: Answer[object]
    uptime: Answer[float]
    memory: Answer[Memory]
    disks: Answer[tuple[Disk, ...]]
    offset: Answer[float]
    releases: Answer[Mapping[str, str]]


@dataclass(frozen=True)
class Placed:
    """A service on a host, with its release. The cluster is down without a `needed` one.

    `release` is empty for a package of Debian.
    """

    service: str
    unit: str
    host: str
    release: str
    needed: bool
    state: Answer[Unit]


@dataclass(frozen=True)
class Hdfs:
    """Metrics of the NameNode. `safemode` is its message, empty when it is off.

    `upgrade` is when an unfinalized upgrade was prepared, in seconds since the epoch; None without one.
    `living` are the hosts of the live DataNodes.
    """

    capacity: int
    used: int
    remaining: int
    live: int
    dead: int
    stale: int
    failed_volumes: int
    blocks: int
    missing: int
    corrupt: int
    low: int
    safemode: str
    upgrade: float | None = None
    living: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tables:
    """The tables of a format, and the time of the last commit, where the metastore has it."""

    format: str
    count: int
    committed: float | None


@dataclass(frozen=True)
class Database:
    """PostgreSQL: its version, and the metastore's tables."""

    version: str
    tables: tuple[Tables, ...]


@dataclass(frozen=True)
class Engine:
    """An engine: the `members` that take work, of those placed, and further metrics."""

    name: str
    members: int
    placed: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Verified:
    """The last report of this cluster in build/report."""

    result: str
    generated: str
    passed: int


@dataclass(frozen=True)
class LastGood:
    """The time of the last good backup or commit (seconds since the epoch), and why later ones failed.

    `damaged` are the names of later ones that are known to be damaged.
    """

    good: float | None
    why: str
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """The status of a cluster. `engines` has placed ones only; `verified` is None without a report."""

    cluster: str
    inventory: str
    profile: str
    at: float
    machines: tuple[Machine, ...]
    services: tuple[Placed, ...]
    datanodes: int
    hdfs: Answer[Hdfs]
    metastore: Answer[object]
    database: Answer[Database]
    engines: Mapping[str, Answer[Engine]]
    verified: Answer[Verified | None]
    clock_limit: float
    # The account of HDFS's superuser.
    superuser: str = "hdfs"
    # Folders of the NameNode without an image of the file system.
    unformatted: Answer[tuple[str, ...]] = Answer(())  # noqa: RUF009 -- it is frozen
    # None where backups are disabled.
    backup: Answer[LastGood | None] = Answer(None)  # noqa: RUF009 -- it is frozen
    # Bytes of deleted files that snapshots keep in HDFS, with all replicas.
    snapshots: Answer[int] = Answer(0)  # noqa: RUF009 -- it is frozen
    # The scheduled commits of the catalog.
    history: Answer[LastGood | None] = Answer(None)  # noqa: RUF009 -- it is frozen
    # The mark of each host, empty where it serves. A host that is away is not in `machines`, unless no other
    # host runs its services.
    away: Mapping[str, Answer[Mark]] = field(default_factory=dict)
    # Hosts in maintenance with a DataNode, which `datanodes` does not count.
    resting: tuple[str, ...] = ()

    @property
    def answered(self) -> int:
        """The number of hosts that answered."""
        return sum(machine.answer.known for machine in self.machines)

    @property
    def running(self) -> int:
        """The number of services that are known to run."""
        return sum(
            placed.state.value is not None and placed.state.value.word == RUNNING for placed in self.services
        )
