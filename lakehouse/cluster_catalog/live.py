"""Read the catalog of a cluster remotely, by psql on the database's own host and by the NameNode."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse.catalog import build
from lakehouse.catalog.psql import Ask, rows
from lakehouse.catalog.source import Source, listed_versions
from lakehouse.clients import Files
from lakehouse.errors import LakehouseError
from lakehouse.model import endpoints
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.remote import hosts, openssh

LIMIT_SECONDS = 600.0


def source(cluster: Cluster) -> Source:
    """Return the source of a cluster's catalog."""
    return Source(
        str(cluster.variable("lakehouse_cluster")), ask=database(cluster), versions=delta_versions(cluster)
    )


def database(cluster: Cluster) -> Ask:
    """Return a function that queries the database of a cluster on its own host, without a password."""
    host = cluster.active("postgresql")

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        command = f"cd / && exec runuser -u postgres -- {shlex.join([*psql(host), '-f', '-'])} 2>&1"
        with openssh.output(host, command, LIMIT_SECONDS, script) as (stdout, ended):
            complaints: list[str] = []
            try:
                yield rows(stdout, complaints)
            except LakehouseError as error:
                answer = ended()
                why = next(iter(complaints), answer.why)
                if not why:
                    raise
                next_command = (
                    error.next_command if answer.known else hosts.ping(cluster.inventory.path, host.name)
                )
                raise LakehouseError(f"{host.name}: {why}: {error.message}", next_command) from error

    return ask


def psql(host: Host) -> list[str]:
    """Return the command line of psql on the database's host, with the metastore's role and database.

    It runs as PostgreSQL's own OS user, which pg_hba.conf accepts as that role.
    """
    port = endpoints.on("postgresql", host).port
    command = ["env", "PGCONNECT_TIMEOUT=5", "PGAPPNAME=lakehouse-catalog", "psql", "-XAtq", "-p", str(port)]
    return [*command, *login(host)]


def login(host: Host) -> list[str]:
    """Return the options of psql for the metastore's role and database."""
    name, user = (str(host.entry("lakehouse_database", key)) for key in ("name", "user"))
    return ["-U", user, "-d", name]


def delta_versions(cluster: Cluster) -> build.Versions:
    """Return a function that looks up versions of Delta tables by listing their `_delta_log`."""
    return listed_versions(Files.of(cluster).names) if cluster.running("namenode") else build.no_versions
