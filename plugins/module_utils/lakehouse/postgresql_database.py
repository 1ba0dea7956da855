"""A login role and its database: the metastore's, which a second role owns, or one that it may only read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import stringprep
import unicodedata
from collections.abc import Callable
from typing import Any

from ansible.module_utils.lakehouse import metastore_sql, programs, reader_sql
from ansible.module_utils.lakehouse.metastore_sql import identifier, literal
from ansible.module_utils.lakehouse.refused import RefusedError, UnansweredError

SECONDS = 60
# The name of what is done in the database itself.
PRIVILEGES = "privileges"
# The exit code of psql where the server was not reached or did not let the role in.
NO_SESSION = 2
# As many rounds as the server's own verifiers have.
SCRAM_ROUNDS = 4096
SCRAM_SALT_BYTES = 16
# Of the role that owns the tables: a playbook's session, and those of people.
OWNER_CONNECTIONS = 5


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
        """Run SQL as the superuser, in the database `postgres`; return its output."""
        return self.session(sql, "postgres", "postgres")

    def session(self, sql: str, database: str, user: str) -> str:
        """Run SQL from standard input in a database as a role that the user postgres may log in as."""
        become = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        place = ["--host", self.sockets] if self.sockets else []
        process = programs.run(
            [*become, "psql", *place, "--port", self.port, "--username", user, "--dbname", database,
             "--no-psqlrc", "--no-align", "--tuples-only", "--quiet", "--set", "ON_ERROR_STOP=1"],
            seconds=SECONDS, next_command="systemctl status postgresql@*", text=sql,
            environment={**os.environ, "PGOPTIONS": metastore_sql.OPTIONS},
        )  # fmt: skip
        if process.returncode:
            kind = UnansweredError if process.returncode == NO_SESSION else RefusedError
            raise kind(f"psql: {process.stderr.strip()}", "systemctl status postgresql@*")
        return process.stdout.strip()

    def is_right(self, login: dict[str, Any]) -> bool:
        """Whether the server accepts the role's password over TCP and the role may what it should."""
        return self.accepts(login, f"{_settled(login)}; select 1 / ({_is_limited(login)})::int")

    def accepts(self, login: dict[str, Any], question: str = "select 1") -> bool:
        """Whether the role can log in over TCP and run a query."""
        process = programs.run(
            ["psql", "--host", "127.0.0.1", "--port", self.port,
             "--username", login["user"], "--dbname", login["name"],
             "--no-password", "--no-psqlrc", "--command", question],
            seconds=SECONDS, next_command="systemctl status postgresql@*",
            environment={**os.environ, "PGPASSWORD": login["password"], "PGCONNECT_TIMEOUT": "10",
                         "PGOPTIONS": metastore_sql.OPTIONS},
        )  # fmt: skip
        return process.returncode == 0


def _settled(login: dict[str, Any]) -> str:
    """Return the query that fails where the role may do something else than it should."""
    if login.get("read_only"):
        return reader_sql.is_settled(login["user"], login["schemas"])
    return metastore_sql.is_settled(login["name"], login["user"], login["owner"])


def statements(server: Server, login: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the required statements, each with a name for display, without running them.

    All of them are for the database `postgres`. Raises UnansweredError if the server is not available yet.
    """
    name, user = login["name"], login["user"]
    owner = "postgres" if login.get("read_only") else login["owner"]
    needed_statements = []
    if not server.admin(f"select 1 from pg_roles where rolname = {literal(user)};"):  # noqa: S608 -- quoted
        needed_statements.append(("role", f"create role {identifier(user)} login;"))
    secret = literal(verifier(login["password"]))
    needed_statements.append(("password", f"alter role {identifier(user)} login password {secret};"))
    if not login.get("read_only"):
        needed_statements += _owner(server, user, owner)
    if not server.admin(f"select 1 from pg_database where datname = {literal(name)};"):  # noqa: S608 -- quoted
        place = f"{identifier(name)} owner {identifier(owner)}"
        make = f"create database {place} template template0 encoding 'UTF8';"
        needed_statements.append(("database", make))
    # Grants of a missing role or database cannot be queried.
    are_right, grants = _grants(login)
    if len(needed_statements) > 1 or server.admin(f"select 1 where not ({are_right});"):
        needed_statements.append(("grants", grants))
    if server.admin(f"select 1 where not ({_is_limited(login)});"):
        needed_statements.append(("connections", _limit(login)))
    return needed_statements


def _limits(login: dict[str, Any]) -> dict[str, int]:
    """Return the maximum sessions of each role: without a limit, one could use all of the server's."""
    if not login.get("connections"):
        return {}
    limits = {login["user"]: int(login["connections"])}
    return limits if login.get("read_only") else {**limits, login["owner"]: OWNER_CONNECTIONS}


def _is_limited(login: dict[str, Any]) -> str:
    limited = (
        f"exists (select from pg_roles where rolname = {literal(role)} and rolconnlimit = {most})"
        for role, most in _limits(login).items()
    )
    return " and ".join(["true", *limited])


def _limit(login: dict[str, Any]) -> str:
    return "".join(
        f"alter role {identifier(role)} connection limit {most};" for role, most in _limits(login).items()
    )


def _owner(server: Server, user: str, owner: str) -> list[tuple[str, str]]:
    """Return the statement that creates the owner of the database, a role without a password.

    It is a member of the metastore's role, so that it can take over that role's objects.
    """
    if not server.admin(f"select 1 from pg_roles where rolname = {literal(owner)};"):  # noqa: S608 -- quoted
        make = f"create role {identifier(owner)} login; grant {identifier(user)} to {identifier(owner)};"
        return [("owner", make)]
    query = (
        "select 1 from pg_roles o, pg_roles u"  # noqa: S608 -- quoted
        f" where o.rolname = {literal(owner)} and u.rolname = {literal(user)}"
        " and pg_has_role(o.oid, u.oid, 'usage');"
    )
    return [] if server.admin(query) else [("owner", f"grant {identifier(user)} to {identifier(owner)};")]


def _grants(login: dict[str, Any]) -> tuple[str, str]:
    """Return the expression that is true where the grants of a database are right, and what makes them so."""
    if not login.get("read_only"):
        words = login["name"], login["user"], login["owner"]
        return metastore_sql.is_owned(*words), metastore_sql.owned(*words)
    name, user = identifier(login["name"]), identifier(login["user"])
    database, role = literal(login["name"]), literal(login["user"])
    are_right = (
        f"not has_database_privilege('public', {database}, 'connect')"
        f" and has_database_privilege({role}, {database}, 'connect')"
        f" and not pg_has_role({role}, 'pg_read_all_data', 'usage')"
    )
    return are_right, (
        f"revoke all on database {name} from public;"
        f"grant connect on database {name} to {user};"
        f"revoke pg_read_all_data from {user};"
    )


def items(server: Server, login: dict[str, Any]) -> list[dict[str, str]]:
    """Return what a role and its database are in the manifest of the host, as they are now.

    The role's password is in the manifest as a digest of its verifier, which has a salt.
    """
    role = literal(login["user"])
    attributes = (
        "select concat_ws(' ', rolpassword, rolsuper, rolcreatedb, rolcreaterole, rolreplication,"  # noqa: S608 -- quoted
        f" rolbypassrls, rolcanlogin, rolconnlimit) from pg_authid where rolname = {role};"
    )
    if login.get("read_only"):
        question = "postgres", f"set role {identifier(login['user'])}; {_settled(login)}"
    else:
        # In the metastore's database no superuser has a session.
        question = login["owner"], _settled(login)
    questions = {
        f"role {login['user']}": ("postgres", "postgres", attributes),
        f"privileges of {login['user']} in {login['name']}": (login["name"], *question),
    }
    return [
        {
            "kind": "sql",
            "name": name,
            "port": server.port,
            "database": database,
            "user": user,
            "sql": sql,
            "sha256": hashlib.sha256(server.session(sql, database, user).encode()).hexdigest(),
        }
        for name, (database, user, sql) in questions.items()
    ]


def needed(server: Server, login: dict[str, Any], warn: Callable[[str], None]) -> list[str]:
    """Return the names of the statements that apply() would need; warn if the server is not available."""
    try:
        if server.is_right(login):
            return []
        names = [name for name, _ in statements(server, login)]
    except UnansweredError as error:
        warn(f"taken for a server without roles, because it cannot be asked yet: {error.what}")
        return ["role", "password", "database", "grants"]
    return [*names, PRIVILEGES] if names == ["password"] and server.accepts(login) else names


def apply(server: Server, login: dict[str, Any]) -> list[str]:
    """Create and correct the role and database of a login of the module postgresql_database.

    Returns the names of the required statements.
    """
    if server.is_right(login):
        return []
    name, user = login["name"], login["user"]
    required = statements(server, login)
    for _, statement in required:
        server.admin(statement)
    names = [label for label, _ in required]
    if not server.accepts(login):
        raise RefusedError(
            f"role {user} cannot log in to database {name} on port {server.port}",
            "journalctl -u postgresql@*, and look at pg_hba.conf",
        )
    if server.is_right(login):
        return names
    if login.get("read_only"):
        server.session(reader_sql.settled(user, login["schemas"]), name, "postgres")
    else:
        server.session(metastore_sql.settled(user, login["owner"]), name, login["owner"])
    if not server.is_right(login):
        raise RefusedError(
            f"role {user} has other privileges in database {name} than it needs, after they were set",
            f"runuser -u postgres -- psql -U {login.get('owner', 'postgres')} -d {name} -c '\\dp *.*'",
        )
    return [*names, PRIVILEGES]
