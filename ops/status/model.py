"""A cluster as it was seen: every value is known, or unknown for a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ops.maybe import Answer
from plugins.module_utils.lakehouse.away import Mark

RUNNING = "running"
# systemd's words, as people say them.
_WORDS = {
    "active": RUNNING,
    "reloading": RUNNING,
    "inactive": "stopped",
    "activating": "starting",
    "deactivating": "stopping",
}
# Of a unit that an operator stopped, or that is not there: `site.yml` starts it.
STOPPED = frozenset({"stopped", "absent"})


@dataclass(frozen=True)
class Unit:
    """A systemd unit: its states, its main process, how often it came back, and since when it is active.

    `enabled` is whether the host's next boot starts it; true too where systemd's word is neither.
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
        """Such as running, stopped or failed; absent where systemd knows no such unit."""
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
    """A host. `offset` is by how many seconds its clock is at least ahead of ours."""

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
    """A service on a host, and the release that it runs from. Nothing works without one that is `needed`."""

    service: str
    unit: str
    host: str
    release: str
    needed: bool
    state: Answer[Unit]


@dataclass(frozen=True)
class Hdfs:
    """What the NameNode counts. `safemode` is what it says of it, empty when it is off.

    `upgrade` is since when one is prepared and not finalized, in seconds since the epoch; None where none is.
    `living` are the hosts of the DataNodes that are live.
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
    """The tables of a format, and when the last commit was made, where the metastore is told."""

    format: str
    count: int
    committed: float | None


@dataclass(frozen=True)
class Database:
    """PostgreSQL: its version, and what the metastore keeps in it."""

    version: str
    tables: tuple[Tables, ...]


@dataclass(frozen=True)
class Engine:
    """An engine: how many `members` of those placed take work, and what else it counts, in its own words."""

    name: str
    members: int
    placed: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Verified:
    """The last report of this cluster that is in build/report."""

    result: str
    generated: str
    passed: int


@dataclass(frozen=True)
class Kept:
    """When the last good one was made (seconds since the epoch), None for never, and why not since.

    `damaged` are the names of those after it that are known to be damaged.
    """

    good: float | None
    why: str
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Status:
    """Everything. An engine that is not placed is not in `engines`; `verified` is None where none was."""

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
    # Folders of the NameNode in which no image of the file system is.
    unformatted: Answer[tuple[str, ...]] = Answer(())  # noqa: RUF009 -- it is frozen
    # None where the inventory wants none.
    backup: Answer[Kept | None] = Answer(None)  # noqa: RUF009 -- it is frozen
    # Bytes that deleted files take in HDFS, with each replica, because a snapshot has them.
    snapshots: Answer[int] = Answer(0)  # noqa: RUF009 -- it is frozen
    # The same of commits of the catalog by the clock.
    history: Answer[Kept | None] = Answer(None)  # noqa: RUF009 -- it is frozen
    # The mark of each host, empty where it serves. One that is away is none of `machines`, unless no other
    # runs what it does.
    away: Mapping[str, Answer[Mark]] = field(default_factory=dict)
    # Hosts in maintenance with a DataNode, which is none of `datanodes`.
    resting: tuple[str, ...] = ()

    @property
    def answered(self) -> int:
        """How many hosts answered."""
        return sum(machine.answer.known for machine in self.machines)

    @property
    def running(self) -> int:
        """How many services are known to run."""
        return sum(
            each.state.value is not None and each.state.value.word == RUNNING for each in self.services
        )
