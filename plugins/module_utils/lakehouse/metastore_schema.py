"""The metastore's schema: initialised once, never over something else."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Protocol

from ansible.module_utils.lakehouse import credentials, programs
from ansible.module_utils.lakehouse.counting import counted
from ansible.module_utils.lakehouse.metastore_sql import CLOSE, MAKING, RUNTIME_STATS
from ansible.module_utils.lakehouse.refused import DeniedError, RefusedError, UnansweredError

# Any number will do as long as every run of the kit takes the same: "lake" in ASCII.
ADVISORY_LOCK = 0x6C616B65
# Those too that the role may not read.
TABLE_COUNT = "select count(*) from pg_tables where schemaname = 'public'"
HAS_VERSION_TABLE = "select to_regclass('public.\"VERSION\"') is not null"
VERSIONS = 'select "SCHEMA_VERSION" from "VERSION"'
IS_MAKING = f"select to_regnamespace('{MAKING}') is not null"
MAY_MAKE = "select has_database_privilege(current_database(), 'create')"
BEGIN = f"create schema {MAKING}"
END = f"drop schema {MAKING}"
# In one transaction: a schema that is complete is its owner's.
FINISH = f"begin;{RUNTIME_STATS}{END};\n{CLOSE}commit;"
# Rows that the schema's script and the start of a metastore make: with more, the tables were used.
BY_DEFAULT = (
    "CTLGS", "DATABASE_PARAMS", "DBS", "GLOBAL_PRIVS", "NOTIFICATION_SEQUENCE", "ROLES", "SEQUENCE_TABLE",
    "VERSION", "aux_table", "next_compaction_queue_id", "next_lock_id", "next_txn_id",
)  # fmt: skip
# One line for each table with rows that a user has made; counting would read all of them.
USED = f"""
do $$
declare
  made text; used boolean; said text := '';
begin
  for made in select tablename from pg_tables where schemaname = 'public' order by 1 loop
    if made = 'DBS' then
      execute 'select exists (select from public."DBS" where "NAME" <> ''default'')' into used;
    elsif made in ({", ".join(f"'{name}'" for name in BY_DEFAULT)}) then
      used := false;
    else
      execute format('select exists (select from public.%I)', made) into used;
    end if;
    if used then said := said || made || E'\\n'; end if;
  end loop;
  perform set_config('lakehouse.used', said, false);
end $$;
select current_setting('lakehouse.used');
"""  # noqa: S608 -- constants
# All sessions but the kit's own; what PostgreSQL runs for itself has no user.
APPLICATION = "lakehouse-schema"
SESSIONS = f"""
select count(*) from pg_stat_activity
where datname = current_database() and usesysid is not null
  and application_name is distinct from '{APPLICATION}'
"""  # noqa: S608 -- a constant
CLEAR = """
do $$
declare made text;
begin
  for made in select tablename from pg_tables where schemaname = 'public' loop
    execute format('drop table public.%I cascade', made);
  end loop;
end $$;
drop schema lakehouse_making;
"""
LOG_LINES = 20
# One statement of psql, which waits for other sessions' locks at most; and all tables, on a busy disk.
STATEMENT_SECONDS, SCHEMA_SECONDS = 120, 600
# The exit code of psql where the server was not reached or did not let the role in.
NO_SESSION = 2


class Database:
    """The metastore's database through psql, by the parameters of the module metastore_schema."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.name, self.host, self.port = parameters["database"], parameters["host"], str(parameters["port"])
        self.where = f"{parameters['host']}:{parameters['port']}/{parameters['database']}"
        self.argv = [
            "psql", "--host", parameters["host"], "--port", str(parameters["port"]),
            "--username", parameters["user"], "--dbname", parameters["database"],
            "--no-password", "--no-psqlrc", "--no-align", "--tuples-only", "--quiet",
            "--set", "ON_ERROR_STOP=1",
        ]  # fmt: skip
        self.environment = {
            **os.environ,
            "PGPASSWORD": parameters["password"],
            "PGCONNECT_TIMEOUT": "10",
            "PGAPPNAME": APPLICATION,
        }

    def run(self, sql: str) -> str:
        """Return the statement's output, or raise RefusedError."""
        advice = "ping it from this host"
        process = programs.run(
            self.argv, seconds=STATEMENT_SECONDS, next_command=advice, text=sql, environment=self.environment
        )
        if process.returncode:
            kind = RefusedError if process.returncode != NO_SESSION else self._unanswered(process.stderr)
            raise kind(f"PostgreSQL at {self.where}: {process.stderr.strip()}", advice)
        return process.stdout.strip()

    def _unanswered(self, message: str) -> type[UnansweredError]:
        """Return the error of a failed login: denied, or of an unavailable server or database."""
        if f'database "{self.name}"' in message:
            return UnansweredError
        argv = ["pg_isready", "--quiet", "--host", self.host, "--port", self.port]
        process = programs.run(
            argv, seconds=STATEMENT_SECONDS, next_command="ping it", environment=self.environment
        )
        return UnansweredError if process.returncode else DeniedError

    def lock(self) -> subprocess.Popen[str]:
        """Hold the advisory lock until the returned session's input is closed."""
        session = subprocess.Popen(
            self.argv, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert session.stdin  # noqa: S101 -- a pipe was asked for
        assert session.stdout  # noqa: S101 -- the same
        session.stdin.write(
            f"set lock_timeout = '60s'; select pg_advisory_lock({ADVISORY_LOCK}); select 'locked';\n"
        )
        session.stdin.flush()
        if not any(line.strip() == "locked" for line in session.stdout):
            raise RefusedError("another run has been initialising the schema for 60 s", "wait for it, rerun")
        return session


def found_version(database: Database, name: str, version: str) -> str | None:
    """The schema's version, None for an empty database; everything between is refused."""
    tables = int(database.run(TABLE_COUNT))
    if tables == 0:
        return None
    versions = database.run(VERSIONS).split() if database.run(HAS_VERSION_TABLE) == "t" else []
    if len(versions) != 1:
        raise RefusedError(
            f"database {name} has {counted(tables, 'table')} but no single schema version"
            f" ({versions or 'none'}): an interrupted initialisation, or another program's tables;"
            " nothing was touched",
            "restore a backup, or drop the database",
        )
    if versions[0] != version:
        raise RefusedError(
            f"database {name} has schema version {versions[0]} (expected {version}); nothing was touched",
            "install the release that made it",
        )
    return versions[0]


def apply(parameters: dict[str, Any]) -> bool:
    """Initialise the schema that the module metastore_schema is given; tell whether that was necessary.

    What an interrupted run has made is removed and made anew, if it was not used yet.
    """
    database = Database(parameters)
    desired = (parameters["database"], parameters["version"])
    if not is_making(database) and found_version(database, *desired):
        return False
    with database.lock():
        if is_making(database):
            refuse_used(database, parameters["database"])
            database.run(CLEAR)
        if found_version(database, *desired) is None:
            _want_rights(database, parameters)
            database.run(BEGIN)
            _initialise(parameters)
            database.run(FINISH)
    return True


def _want_rights(database: Database, parameters: dict[str, Any]) -> None:
    if database.run(MAY_MAKE) == "f":
        name, user = parameters["database"], parameters["user"]
        raise RefusedError(
            f"database {name} is empty, and role {user} may make no tables in it",
            "run site.yml with --tags postgresql,metastore, which lets it",
        )


class Runs(Protocol):
    """Whatever runs SQL in one database."""

    def run(self, sql: str) -> str:
        """Return the statement's output, or raise RefusedError."""


def uses(database: Runs) -> list[str]:
    """What shows that the tables are used: rows that are not there by default."""
    tables = database.run(USED).split()
    return [f"rows in {', '.join(tables)}"] if tables else []


def refuse_used(database: Database, name: str) -> None:
    """Raise RefusedError where the tables hold data, or a client is connected."""
    sessions = int(database.run(SESSIONS))
    used = uses(database) + ([f"{counted(sessions, 'other session')}"] if sessions else [])
    if used:
        raise RefusedError(
            f"database {name} has the mark of an interrupted initialisation (schema lakehouse_making), but is"
            f" in use ({'; '.join(used)}); nothing was touched",
            f"stop who is connected; if the catalog is whole, psql {name} -c '{END}', and rerun",
        )


def is_needed(parameters: dict[str, Any]) -> bool:
    """Tell whether apply() would make the schema, touching nothing; raise what it would refuse.

    Raises UnansweredError where the database cannot be asked yet, DeniedError where it lets no user in.
    """
    try:
        return _is_needed(parameters)
    except UnansweredError:
        # A password that a run would change: until then the installed one opens the database.
        installed = credentials.password_in(parameters["credentials_file"])
        if installed in (None, parameters["password"]):
            raise
        return _is_needed({**parameters, "password": installed})


def _is_needed(parameters: dict[str, Any]) -> bool:
    database = Database(parameters)
    if is_making(database):
        refuse_used(database, parameters["database"])
        return True
    return not found_version(database, parameters["database"], parameters["version"])


def is_making(database: Database) -> bool:
    """Whether a run makes the tables at this moment, or was interrupted in it."""
    return database.run(IS_MAKING) == "t"


def _initialise(parameters: dict[str, Any]) -> None:
    environment = {**os.environ, "METASTORE_HOME": parameters["metastore_home"]}
    process = programs.run(
        parameters["argv"], seconds=SCHEMA_SECONDS, next_command="rerun", environment=environment
    )
    if process.returncode:
        lines = (process.stdout + process.stderr).strip().splitlines()
        raise RefusedError(
            "initialising the schema failed",
            "read the log below, rerun",
            lines[-LOG_LINES:],
        )
