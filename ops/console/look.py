"""Asks the cluster for what the page shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

from lakehouse import inventory
from lakehouse.errors import LakehouseError
from lakehouse.inventory import Host
from ops.console import view
from ops.console.view import Count, View, Warehouse
from ops.maybe import Answer, unknown
from ops.probing import Prober
from ops.status import look as status
from ops.status import placement, questions, reading, screen
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse.fsck import MOST_BYTES, File, NameNodeError, named, parse_fsck
from plugins.module_utils.lakehouse.probes import fetch

# Of a look in the background: a busy machine has longer for it than for a status, which a person waits for.
LIMIT_SECONDS = 8.0
# The NameNode walks through all files; a silence in its answer has a limit.
FSCK_SECONDS = 30
_TABLES = "tables"
# Where Spark keeps the folder of a table that Hive cannot read (docs/metastore.md) it says so beside it.
_SQL = f"""
SELECT json_build_object('database', "NAME", 'name', "TBL_NAME", 'format', format,
                         'location', coalesce("PARAM_VALUE", "LOCATION"))
FROM ({questions.TABLES}) known
JOIN "TBLS" USING ("TBL_ID") JOIN "DBS" USING ("DB_ID") LEFT JOIN "SDS" USING ("SD_ID")
LEFT JOIN "SERDE_PARAMS" ON "SERDE_PARAMS"."SERDE_ID" = "SDS"."SERDE_ID" AND "PARAM_KEY" = 'path'
WHERE format <> 'view'
"""  # noqa: S608 -- of constants


def look(path: str) -> View:
    """Return the cluster as seen within LIMIT_SECONDS.

    Raises LakehouseError where the inventory cannot be read, or has no hosts to log in to.
    """
    began = time.monotonic()
    with closing(Prober()) as prober:
        cluster = placement.read(inventory.load(path))
        answers = status.ask(prober, cluster, questions.questions(cluster, _commands), began + LIMIT_SECONDS)
    return _view(cluster, answers, began)


def _commands(cluster: Cluster, host: Host) -> Iterator[tuple[str, str]]:
    if any(service.name == "postgresql" for service in cluster.services[host.name]):
        yield _TABLES, questions.psql(host, _SQL)


def _view(cluster: Cluster, answers: reading.Answers, began: float) -> View:
    found = status.seen(cluster, answers)
    reply = answers[questions.shell(cluster.active("postgresql"))]
    info = answers["namenode"].then(reading.beans)
    [(_, url)] = cluster.urls({"fsck": ("namenode_http", "/fsck")})
    return View(
        status=found,
        ending=screen.result(found, time.monotonic() - began),
        datanodes=info.then(view.datanodes),
        files=answers["hdfs"].then(reading.beans).then(lambda beans: int(beans["FilesTotal"])),
        tables=reading.part(reply, questions.parts(reply), _TABLES).then(view.listed),
        warehouse=Warehouse(
            url, str(cluster.variable("lakehouse_users")["hdfs"]), info.then(view.names).value or {}
        ),
    )


def count(seen: View) -> Count:
    """Return every closed file of HDFS, by the tables that were seen.

    NameNodeError says why the files are not known, and LakehouseError why the tables are not.
    """
    if seen.tables.value is None:
        raise LakehouseError(f"the tables are not known: {seen.tables.why}")
    return Answer(view.counted(seen.tables.value, files(seen.warehouse)))


def files(warehouse: Warehouse) -> tuple[File, ...]:
    """Return every closed file of HDFS; NameNodeError says why they are not known."""
    query = {"ugi": warehouse.superuser, "path": "/", "files": "1", "blocks": "1", "locations": "1"}
    try:
        report = fetch(f"{warehouse.url}?{urlencode(query)}", timeout=FSCK_SECONDS, most=MOST_BYTES)
    except OSError as error:
        raise NameNodeError(f"{warehouse.url}: {error}") from error
    return named(parse_fsck(report.decode(errors="replace")), warehouse.names)


def uncounted() -> Count:
    """Return what is known of the files before the NameNode was asked."""
    return unknown("the NameNode has not been asked yet")
