"""A role may take so many sessions of the server, and leaves some for others."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.lakehouse.postgresql_database import (
    OWNER_CONNECTIONS,
    Server,
    _is_limited,
    statements,
)

from tests.unit import metastore_database

PORT = 5432
METASTORE = {"name": "meta", "user": "hms", "owner": "hms_owner", "password": "x", "connections": 85}
READER = {
    "name": "fed", "user": "reader", "password": "x", "read_only": True, "schemas": ["public"],
    "connections": 10,
}  # fmt: skip


def limit(server: Server, role: str) -> str:
    return str(server.admin(f"select rolconnlimit from pg_roles where rolname = '{role}';"))  # noqa: S608


def settle(server: Server, login: dict[str, Any]) -> list[str]:
    """Run what is needed; return the names of it."""
    needed = statements(server, login)
    for _, statement in needed:
        server.admin(statement)
    return [name for name, _ in needed]


def test_a_role_is_limited_once_and_again_where_it_has_another_limit() -> None:
    with metastore_database.bare() as administrator:
        server = Server(PORT, str(administrator.sockets))
        for login, role in ((METASTORE, "hms"), (READER, "reader")):
            assert "connections" in settle(server, login)
            assert limit(server, role) == str(login["connections"])
            assert "connections" not in settle(server, login)
            server.admin(f"alter role {role} connection limit -1;")
            assert "connections" in settle(server, login)
            assert limit(server, role) == str(login["connections"])
        assert limit(server, "hms_owner") == str(OWNER_CONNECTIONS)


def test_a_role_without_a_limit_is_let_be() -> None:
    assert _is_limited({**METASTORE, "connections": None}) == "true"
    assert _is_limited({key: value for key, value in READER.items() if key != "connections"}) == "true"
