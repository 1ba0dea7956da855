"""Locks in the metastore: who holds one, and a process that takes one and is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

from hive_metastore.ttypes import (
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    ShowLocksRequest,
)

from suites.testbed import metastore
from suites.testbed.databases import Table
from suites.testbed.endpoints import Service

# The arguments are host, port, user, database and table. It asks for the lock as Iceberg's writers do, and
# holds it until it is killed.
_HOLDER = """
import sys
from suites.matrix.cross import locks
host, port, user, database, table = sys.argv[1:]
print(locks.take(host, int(port), user, database, table), flush=True)
sys.stdin.read()
"""


def take(host: str, port: int, user: str, database: str, table: str) -> int:
    """Take the exclusive lock of a table and keep it; return its id."""
    part = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, database, table)
    with metastore.Connection(Service(host, host, port), user) as client:
        return int(client.lock(LockRequest([part], user=user, hostname=host)).lockid)


def left_by_killed_writer(service: Service, user: str, table: Table) -> int:
    """Start a process that takes the lock of a table, kill it with SIGKILL; return the id of the lock."""
    arguments = [service.address, str(service.port), user, table.database, table.name]
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        lock = int(holder.stdout.readline())
        holder.send_signal(signal.SIGKILL)
    return lock


def held(client: Any, table: Table) -> list[int]:
    """Return the ids of all locks of a table."""
    locks = client.show_locks(ShowLocksRequest(table.database, table.name)).locks
    return [int(lock.lockid) for lock in locks]


def patience(client: Any) -> int:
    """Seconds after which the metastore has taken a lock from a holder that says nothing."""
    return sum(
        int(client.get_config_value(key, "0s").removesuffix("s"))
        for key in ("metastore.txn.timeout", "metastore.timedout.txn.reaper.interval")
    )
