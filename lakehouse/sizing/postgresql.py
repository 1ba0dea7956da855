"""PostgreSQL and the connections that the metastore holds to it."""

from __future__ import annotations

from lakehouse.sizing.facts import Host
from lakehouse.sizing.units import clamp, down

# Two pools of DataNucleus, with and without a transaction, and two for locks; each is full from its first
# use on.
POOLS = 4
# Three that PostgreSQL keeps for its superuser, the playbook's, and those of people.
OTHERS = 20
# The least that is enough: none of the people are there.
SPARED = 10
FEDERATION = 10
# What a shipped inventory has had so far.
LEAST_CONNECTIONS = 100


def pool_size(cores: int) -> int:
    """Connections of each of the metastore's pools: (2C + 1) / 4, 10 to 20.

    Hive asks for 2 x pools x servers = 2 x cores + disks and counts two pools of its four. Ten is what
    every size of the kit's own clusters was measured with.
    """
    return int(clamp((2 * cores + 1) // 4, 10, 20))


def connections(pools: int) -> int:
    """Connections that PostgreSQL allows: the metastores' (``pools`` in sum), Trino's and others."""
    return max(LEAST_CONNECTIONS, POOLS * pools + FEDERATION + OTHERS)


def settings(host: Host, budget: int, allowed: int) -> dict[str, int]:
    """Divide PostgreSQL's budget (MiB): after pgtune, with the page cache that the host keeps free anyway.

    le0pard/pgtune:src/features/configuration/configurationSlice.js: shared_buffers R/4,
    effective_cache_size 3R/4, work_mem (R - shared_buffers) / (3 x (connections + workers)),
    maintenance_work_mem R/16.
    """
    buffers = budget // 2
    return {
        "postgresql_shared_buffers_mb": buffers,
        "postgresql_effective_cache_mb": down(buffers + 0.07 * host.memory),
        "postgresql_work_mem_mb": max(4, int(buffers / (3 * (allowed + 8)))),
        "postgresql_maintenance_work_mem_mb": max(64, budget // 16),
    }
