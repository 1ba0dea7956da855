"""PostgreSQL: whether its connections are enough for the metastore."""

from __future__ import annotations

from lakehouse.inventory import Host
from lakehouse.validation.finding import Finding

# Two of DataNucleus, with and without a transaction, and two for locks; each is full from its first use on.
POOLS = 4
POOL_SIZE, MAX_CONNECTIONS = 10, 100  # where the inventory says nothing: the defaults of the roles
# Three that PostgreSQL keeps for its superuser; the playbook's, and Trino's in a federation.
OTHERS = 10


def connections(host: Host) -> list[Finding]:
    """Check that the metastore's pools leave connections for others: the playbook needs one too."""
    settings = host.variables
    own = settings.get("postgresql_settings", {})
    most = int(own.get("max_connections") or settings.get("postgresql_max_connections", MAX_CONNECTIONS))
    size = int(settings.get("hive_metastore_pool_size", POOL_SIZE))
    if POOLS * size + OTHERS <= most:
        return []
    fact = (
        f"the metastore holds {POOLS} x {size} connections (hive_metastore_pool_size), and PostgreSQL allows "
        f"{most} in all"
    )
    return [
        Finding(
            "postgresql.connections",
            host.name,
            fact,
            "raise postgresql_max_connections, or lower hive_metastore_pool_size",
            f"at least {POOLS * size + OTHERS}",
        )
    ]
