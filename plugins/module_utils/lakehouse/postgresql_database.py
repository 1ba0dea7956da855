"""A login role and its database: its own, or one that it may only read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import stringprep
import unicodedata
from collections.abc import Callable
from typing import Any

from ansible.module_utils.lakehouse import programs
from ansible.module_utils.lakehouse.refused import RefusedError, UnansweredError

# Nobody else may enter the database. A reader must have the right to read all tables, and none to make one.
OWNER_QUESTION = "select 1 / (not has_database_privilege('public', current_database(), 'connect'))::int"
READER_QUESTION = (
    "select 1 / (pg_has_role(current_user, 'pg_read_all_data', 'usage')"
    " and not has_database_privilege('public', current_database(), 'connect')"
    " and not has_database_privilege(current_database(), 'create')"
    " and not has_database_privilege(current_database(), 'temporary'))::int"
)
SECONDS = 60
# The exit code of psql where the server was not reached or did not let the role in.
NO_SESSION = 2
# As many rounds as the server's own verifiers have.
SCRAM_ROUNDS = 4096
SCRAM_SALT_BYTES = 16


def literal(text: str) -> str:
    """Quote a string for SQL (standard_conforming_strings is on since PostgreSQL 9.1)."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def prepared(password: str) -> bytes:
    """Prepare a password for SCRAM (SASLprep, RFC 4013), as every client does when it logs in."""
    mapped = "".join(
        " " if stringprep.in_table_c12(letter) else letter
        for letter in password
        if not stringprep.in_table_b1(letter)
    )
    return unicodedata.normalize("NFKC", mapped).encode()


def verifier(password: str, salt: bytes | None = None) -> str:
    """Return what the server keeps of a password (RFC 5803): a statement that holds it may be logged."""
    salt = os.urandom(SCRAM_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password), salt, SCRAM_ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    words = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return "SCRAM-SHA-256${}:{}${}:{}".format(SCRAM_ROUNDS, *words)


class Server:
    """A server of this machine on a port, and in a folder of sockets if that is not the usual one."""

    def __init__(self, port: int, sockets: str | None = None) -> None:
        self.port = str(port)
        self.sockets = sockets

    def admin(self, sql: str) -> str:
        """Run SQL from standard input as the superuser; return its output."""
        become = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        place = ["--host", self.sockets] if self.sockets else []
        done = programs.run(
            [*become, "psql", *place, "--port", self.port,
             "--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set", "ON_ERROR_STOP=1"],
            seconds=SECONDS, next_command="systemctl status postgresql@*", text=sql,
        )  # fmt: skip
        if done.returncode:
            kind = UnansweredError if done.returncode == NO_SESSION else RefusedError
            raise kind(f"psql: {done.stderr.strip()}", "systemctl status postgresql@*")
        return done.stdout.strip()

    def is_right(self, login: dict[str, Any]) -> bool:
        """Whether the server accepts the role's password over TCP and the role may what it should."""
        question = READER_QUESTION if login.get("read_only") else OWNER_QUESTION
        done = programs.run(
            ["psql", "--host", "127.0.0.1", "--port", self.port,
             "--username", login["user"], "--dbname", login["name"],
             "--no-password", "--no-psqlrc", "--command", question],
            seconds=SECONDS, next_command="systemctl status postgresql@*",
            environment={**os.environ, "PGPASSWORD": login["password"], "PGCONNECT_TIMEOUT": "10"},
        )  # fmt: skip
        return done.returncode == 0


def statements(server: Server, login: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the statements that are needed, each with a name that may be shown, changing nothing.

    Raises UnansweredError where the server cannot be asked yet.
    """
    name, user = login["name"], login["user"]
    found = []
    if not server.admin(f"select 1 from pg_roles where rolname = {literal(user)};"):  # noqa: S608 -- quoted
        found.append(("role", f"create role {identifier(user)} login;"))
    secret = literal(verifier(login["password"]))
    found.append(("password", f"alter role {identifier(user)} login password {secret};"))
    if not server.admin(f"select 1 from pg_database where datname = {literal(name)};"):  # noqa: S608 -- quoted
        owner = "postgres" if login.get("read_only") else identifier(user)
        make = f"create database {identifier(name)} owner {owner} template template0 encoding 'UTF8';"
        found.append(("database", make))
    grants = f"revoke all on database {identifier(name)} from public;"
    if login.get("read_only"):
        grants += f"grant connect on database {identifier(name)} to {identifier(user)};"
        grants += f"grant pg_read_all_data to {identifier(user)};"
    asked = f"has_database_privilege('public', {literal(name)}, 'connect')"
    if login.get("read_only"):
        asked += f" or not pg_has_role({literal(user)}, 'pg_read_all_data', 'usage')"
    # With a role or a database that is not there yet, there is nothing to ask about.
    if len(found) > 1 or server.admin(f"select 1 where {asked};"):
        found.append(("grants", grants))
    return found


def needed(server: Server, login: dict[str, Any], warn: Callable[[str], None]) -> list[str]:
    """Return the names of the statements that apply() would need; with a warning if nobody can be asked."""
    try:
        return [] if server.is_right(login) else [name for name, _ in statements(server, login)]
    except UnansweredError as error:
        warn(f"taken for a server without roles, because it cannot be asked yet: {error.what}")
        return ["role", "password", "database", "grants"]


def apply(server: Server, login: dict[str, Any]) -> list[str]:
    """Make and mend the role and database that the module postgresql_database is given.

    Returns the names of the statements that were needed.
    """
    if server.is_right(login):
        return []
    wanted = statements(server, login)
    for _, statement in wanted:
        server.admin(statement)
    if not server.is_right(login):
        raise RefusedError(
            f"role {login['user']} cannot log in to database {login['name']} on port {server.port}",
            "journalctl -u postgresql@*, and look at pg_hba.conf",
        )
    return [name for name, _ in wanted]
