"""A login role and its database: its own, or one that it may only read."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from ansible.module_utils.refused import RefusedError

# A reader must have the right to read all tables, and no right to make one.
OWNER_QUESTION = "select 1"
READER_QUESTION = (
    "select 1 / (pg_has_role(current_user, 'pg_read_all_data', 'usage')"
    " and not has_database_privilege(current_database(), 'create')"
    " and not has_database_privilege(current_database(), 'temporary'))::int"
)


def literal(text: str) -> str:
    """Quote a string for SQL (standard_conforming_strings is on since PostgreSQL 9.1)."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


class Server:
    """A server of this machine on a port, and in a folder of sockets if that is not the usual one."""

    def __init__(self, port: int, sockets: str | None = None) -> None:
        self.port = str(port)
        self.sockets = sockets

    def admin(self, sql: str) -> str:
        """Run SQL from standard input as the superuser; return its output."""
        become = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        place = ["--host", self.sockets] if self.sockets else []
        done = subprocess.run(
            [*become, "psql", *place, "--port", self.port,
             "--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set", "ON_ERROR_STOP=1"],
            input=sql, capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        if done.returncode:
            raise RefusedError(f"psql: {done.stderr.strip()}", "systemctl status postgresql@*")
        return done.stdout.strip()

    def is_right(self, login: dict[str, Any]) -> bool:
        """Whether the server accepts the role's password over TCP and the role may what it should."""
        question = READER_QUESTION if login.get("read_only") else OWNER_QUESTION
        done = subprocess.run(
            ["psql", "--host", "127.0.0.1", "--port", self.port,
             "--username", login["user"], "--dbname", login["name"],
             "--no-password", "--no-psqlrc", "--command", question],
            env={**os.environ, "PGPASSWORD": login["password"]},
            capture_output=True, check=False, cwd="/",
        )  # fmt: skip
        return done.returncode == 0


def apply(server: Server, login: dict[str, Any]) -> list[str]:
    """Make and mend the role and database that the module postgresql_database is given.

    Returns the names of the statements that were needed.
    """
    if server.is_right(login):
        return []
    name, user = login["name"], login["user"]
    done = []
    if not server.admin(f"select 1 from pg_roles where rolname = {literal(user)};"):  # noqa: S608 -- quoted
        server.admin(f"create role {identifier(user)} login;")
        done.append("role")
    server.admin(f"alter role {identifier(user)} login password {literal(login['password'])};")
    done.append("password")
    if not server.admin(f"select 1 from pg_database where datname = {literal(name)};"):  # noqa: S608 -- quoted
        owner = "postgres" if login.get("read_only") else identifier(user)
        server.admin(f"create database {identifier(name)} owner {owner} template template0 encoding 'UTF8';")
        done.append("database")
    if login.get("read_only"):
        server.admin(
            f"revoke create, temporary on database {identifier(name)} from public;"
            f"grant connect on database {identifier(name)} to {identifier(user)};"
            f"grant pg_read_all_data to {identifier(user)};"
        )
        done.append("grants")
    if not server.is_right(login):
        raise RefusedError(
            f"role {user} cannot log in to database {name} on port {server.port}",
            "journalctl -u postgresql@*, and look at pg_hba.conf",
        )
    return done
