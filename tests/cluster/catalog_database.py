"""The metastore's database as its role sees it: SQL, and tables whose changes are held up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.waiting import wait_for
from tests.cluster.machines import Machine

SECONDS = 60
_HOLDER = "kit-holds-a-table"
_HELD = f"application_name = '{_HOLDER}'"
_PSQL = "runuser -u %s -- psql -XAtq -p %s -U %s -d %s"


def sql(machine: Machine, statement: str) -> str:
    """Run a statement as the metastore's role on the database's host."""
    return machine.run(f"cd / && {_PSQL} -c %s", *_arguments(machine), statement)


@contextmanager
def held(machine: Machine, table: str, mode: str) -> Iterator[None]:
    """Hold a lock on a table of the catalog in the block, at most for two minutes."""
    work = f'begin; lock table "{table}" in {mode} mode; select pg_sleep(120)'
    command = f"systemd-run --quiet --collect --unit=%s --setenv=PGAPPNAME=%s {_PSQL} -c %s"
    granted = f"select count(*) from pg_stat_activity where wait_event = 'PgSleep' and {_HELD}"  # noqa: S608
    ended = f"select count(pg_terminate_backend(pid)) from pg_stat_activity where {_HELD}"  # noqa: S608
    with machine.transient(_HOLDER):
        machine.run(command, _HOLDER, _HOLDER, *_arguments(machine), work)
        try:
            wait_for("the lock", lambda: sql(machine, granted) != "0", seconds=SECONDS)
            yield
        finally:
            # The server does not see that a client has gone while its query sleeps.
            sql(machine, ended)


def waiting(machine: Machine) -> int:
    """Return how many sessions of the database wait for a lock."""
    return int(sql(machine, "select count(distinct pid) from pg_locks where not granted"))


def _arguments(machine: Machine) -> tuple[object, ...]:
    database = machine.variable("lakehouse_database")
    return (
        machine.variable("lakehouse_users")["hive"],
        machine.variable("lakehouse_ports")["postgresql"],
        database["user"],
        database["name"],
    )
