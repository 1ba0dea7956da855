"""Reads the metastore's database on its own host, and asks HDFS for the versions of Delta tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from lakehouse.catalog import build, query
from lakehouse.catalog.build import Base, Built
from lakehouse.catalog.reading import Stream
from lakehouse.catalog.store import Writer
from lakehouse.errors import LakehouseError
from lakehouse.inventory import Host
from ops import hosts, remote
from ops.clients import Files
from ops.status.placement import Cluster

LIMIT_SECONDS = 600.0
# NameNodes answer a listing in milliseconds; so many are asked for at once.
_AT_ONCE = 8
_VERSION = re.compile(r"(\d{20})\.(?:json|checkpoint\b.*)")
# psql's complaints, which begin no row.
_COMPLAINT = b"psql:"

# Runs a script for psql in the metastore's database, and gives what it prints.
Ask = Callable[[str], AbstractContextManager[Iterator[bytes]]]


def read(ask: Ask, writer: Writer, base: Base | None, versions: build.Versions) -> Built:
    """Return the catalog as it is now; LakehouseError where it cannot be read to its end.

    Tables that have not changed since `base` are taken over from it.
    """
    try:
        return _read(ask, writer, base, versions)
    except build.StaleError:
        return _read(ask, writer, None, versions)


def _read(ask: Ask, writer: Writer, base: Base | None, versions: build.Versions) -> Built:
    with ask(query.script(base.marks if base else None)) as lines:
        return build.build(Stream(lines), writer, base, versions)


def database(cluster: Cluster) -> Ask:
    """Return what asks the database of a cluster, as PostgreSQL's own user: no password is on the way."""
    found = cluster.running("postgresql")
    if not found:
        raise LakehouseError(f"no host of {cluster.inventory.path} runs postgresql", "ls inventory")
    host = found[0]

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        with remote.output(host, _psql(host), LIMIT_SECONDS, script) as (stdout, ended):
            complaints: list[str] = []
            try:
                yield _rows(stdout, complaints)
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


def _psql(host: Host) -> str:
    name, port = host.entry("lakehouse_database", "name"), host.variables["lakehouse_ports"]["postgresql"]
    command = ["env", "PGCONNECT_TIMEOUT=5", "PGAPPNAME=lakehouse-catalog", "psql", "-XAtq", "-p", str(port)]
    return f"cd / && exec runuser -u postgres -- {shlex.join([*command, '-d', str(name), '-f', '-'])} 2>&1"


def _rows(stream: Iterator[bytes], complaints: list[str]) -> Iterator[bytes]:
    for line in stream:
        if line.startswith(_COMPLAINT):
            complaints.append(" ".join(line.decode(errors="replace").split()))
        else:
            yield line


def delta_versions(cluster: Cluster) -> build.Versions:
    """Return what looks up versions of Delta tables: the NameNode lists the `_delta_log` of each."""
    files = Files(cluster) if cluster.running("namenode") else None

    def ask(places: Collection[str]) -> Mapping[str, str]:
        if files is None or not places:
            return {}
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                logs = pool.map(lambda place: files.names(f"{place}/_delta_log"), places)
                found = dict(zip(places, map(newest, logs), strict=True))
        except LakehouseError as error:
            # Unknown is not another version than the last.
            raise LakehouseError(
                f"the versions of {len(places)} Delta tables cannot be had: {error.message}",
                error.next_command,
            ) from error
        return {place: version for place, version in found.items() if version}

    return ask


def newest(names: Iterable[str]) -> str | None:
    """Return the version that the files of a `_delta_log` end with; None where there is none."""
    found = [int(match[1]) for name in names if (match := _VERSION.fullmatch(name))]
    return str(max(found)) if found else None
