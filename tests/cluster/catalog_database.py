"""The metastore's database as its role sees it: SQL, and tables whose changes are held up."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from suites.testbed.waiting import wait_for
from tests.cluster.machines import Machine

SECONDS = 60
_PROPERTIES, _LONGEST_VALUE = 6, 4_000
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


@contextmanager
def partitions(machine: Machine, database: str, table: str, letters: int) -> Iterator[None]:
    """Give a table with one partition column partitions that have so many letters in their properties."""
    # The metastore numbers its rows upwards from 1.
    last = -secrets.randbelow(10**12)
    first = last - letters // (_PROPERTIES * _LONGEST_VALUE)
    ids = f"generate_series({first}, {last}) id"
    # Names that the caller made, and numbers.
    own = (
        '(select t."TBL_ID" own, s."CD_ID", s."LOCATION" from "TBLS" t'  # noqa: S608
        ' join "DBS" d using ("DB_ID") join "SDS" s using ("SD_ID")'
        f" where d.\"NAME\" = '{database}' and t.\"TBL_NAME\" = '{table}') s"
    )
    rows = {
        "SERDES": ('"SERDE_ID"', f"id from {ids}"),
        "SDS": (
            '"SD_ID", "SERDE_ID", "CD_ID", "IS_COMPRESSED", "IS_STOREDASSUBDIRECTORIES",'
            ' "NUM_BUCKETS", "LOCATION"',
            f'id, id, s."CD_ID", false, false, -1, s."LOCATION" || id from {ids}, {own}',
        ),
        "PARTITIONS": (
            '"PART_ID", "SD_ID", "TBL_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "PART_NAME"',
            f"id, id, s.own, 0, 0, 'day=' || id from {ids}, {own}",
        ),
        "PARTITION_KEY_VALS": ('"PART_ID", "PART_KEY_VAL", "INTEGER_IDX"', f"id, id::text, 0 from {ids}"),
        "PARTITION_PARAMS": (
            '"PART_ID", "PARAM_KEY", "PARAM_VALUE"',
            f"id, 'p' || key, repeat('x', {_LONGEST_VALUE})"
            f" from {ids}, generate_series(1, {_PROPERTIES}) key",
        ),
    }
    try:
        for name, (columns, values) in rows.items():
            sql(machine, f'insert into "{name}" ({columns}) select {values}; analyze "{name}"')
        yield
    finally:
        for name, (columns, _) in reversed(rows.items()):
            key = columns.partition(",")[0]
            sql(machine, f'delete from "{name}" where {key} between {first} and {last}')  # noqa: S608


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
