"""PostgreSQL: whether its connections are enough for the metastore."""

from __future__ import annotations

from lakehouse.inventory import Inventory
from lakehouse.sizing.postgresql import POOLS, SPARED
from lakehouse.validation import sizes
from lakehouse.validation.finding import Finding

POOL, MOST = "hive_metastore_pool_size", "postgresql_max_connections"


def connections(inventory: Inventory) -> list[Finding]:
    """Check that the metastore's pools leave connections for others: the playbook needs one too.

    The pools are those of the metastore's host, and the connections those of PostgreSQL's, as far as the
    inventory sets them; otherwise what the model of sizes gives them.
    """
    made = sizes.effective(inventory.hosts)
    if not made:
        return []
    size = sum(made[host.name][POOL] for host in inventory.group("metastore"))
    findings = []
    for host in inventory.group("postgresql"):
        own = host.variables.get("postgresql_settings") or {}
        most = int(own.get("max_connections") or made[host.name][MOST])
        if POOLS * size + SPARED > most:
            held = f"the metastore holds {POOLS} x {size} connections ({POOL})"
            fact = f"{held}, and PostgreSQL allows {most} in all"
            advice = f"raise {MOST}, or lower {POOL}"
            expected = f"at least {POOLS * size + SPARED}"
            findings.append(Finding("postgresql.connections", host.name, fact, advice, expected))
    return findings
