"""PostgreSQL: whether its connections are enough for the metastore."""

from __future__ import annotations

from lakehouse.inventory import Host
from lakehouse.sizing.postgresql import POOLS, pool_size
from lakehouse.sizing.postgresql import connections as allowed
from lakehouse.validation.finding import Finding

# Three that PostgreSQL keeps for its superuser; the playbook's, and Trino's in a federation.
OTHERS = 10


def connections(host: Host) -> list[Finding]:
    """Check that the metastore's pools leave connections for others: the playbook needs one too."""
    settings = host.variables
    own = settings.get("postgresql_settings", {})
    size = int(settings.get("hive_metastore_pool_size") or pool_size(settings.get("node_cores") or 1))
    most = int(own.get("max_connections") or settings.get("postgresql_max_connections") or allowed(size))
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
