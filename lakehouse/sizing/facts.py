"""What the sizes follow from: machines, what is placed on them, and what the user has said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# Parts of what the fixed services leave, by engine. Several applications share Spark's.
WEIGHTS: Mapping[str, float] = {"spark": 4, "trino": 3, "flink": 2}
# The rest of a machine is the operating system's and the page cache's, which HDFS reads from.
USABLE = 0.85
# M is rounded down to this: what the kernel keeps changes with its version.
MEMORY_STEP = 128


@dataclass(frozen=True)
class Host:
    """One machine: memory in MiB, virtual processors, raw disk of its DataNode in GB (0: not known).

    ``services`` are names of ``lakehouse.sizing.fixed`` and ``lakehouse.sizing.engines``; ``sizes`` what
    the user has set, by the name of its variable.
    """

    name: str
    memory_mb: int
    cores: int
    services: frozenset[str]
    disk_gb: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def memory(self) -> int:
        """Memory that the sizes follow from, in MiB."""
        return self.memory_mb // MEMORY_STEP * MEMORY_STEP


@dataclass(frozen=True)
class Cluster:
    """All machines, copies of each block, a factor on all memory, and weights of engines."""

    hosts: tuple[Host, ...]
    replication: int = 3
    overcommit: float = 1.0
    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)

    def having(self, service: str) -> tuple[Host, ...]:
        """Return the hosts on which a service is placed."""
        return tuple(host for host in self.hosts if service in host.services)

    def placing(self, *services: str) -> Cluster:
        """Return the same cluster with these services on every host too."""
        return replace(
            self, hosts=tuple(replace(of, services=of.services.union(services)) for of in self.hosts)
        )

    def usable(self, host: Host) -> float:
        """Return what the services of a host may sum to, in MiB."""
        return USABLE * self.overcommit * host.memory
