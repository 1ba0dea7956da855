"""The database that Trino's catalog `postgresql` reads, as PostgreSQL's superuser sees it."""

from __future__ import annotations

from collections.abc import Callable

from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.facade import Facade
from suites.testbed.nodes import Nodes

SCHEMA = "public"
_DATABASE = "SELECT current_database()::text AS name"


def superuser(trino: Facade, nodes: Nodes, endpoints: Endpoints) -> Callable[[str], object] | None:
    """Return what runs a statement in that database as its superuser; None without a federation."""
    if ("postgresql",) not in trino.sql("SHOW CATALOGS"):
        return None
    database = trino.value(f"SELECT * FROM TABLE(postgresql.system.query(query => '{_DATABASE}'))")

    def run(statement: str) -> object:
        psql = ("psql", "-d", str(database), "-XAtqc", statement)
        return nodes.run(endpoints.postgresql.host, *psql, user="postgres")

    return run
