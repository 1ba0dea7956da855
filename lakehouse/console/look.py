"""Read the state of the cluster for the console."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

from lakehouse.console import view
from lakehouse.console.view import Count, View, Warehouse
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.monitoring import panels
from lakehouse.monitoring.plots import read
from lakehouse.remote.probing import Prober
from lakehouse.status import look as status
from lakehouse.status import questions, reading, screen
from plugins.module_utils.lakehouse.fsck import MOST_BYTES, File, NameNodeError, named, parse_fsck
from plugins.module_utils.lakehouse.probes import fetch

# Timeout of a background refresh, longer than that of `status`, for which an operator waits.
LIMIT_SECONDS = 8.0
# The NameNode walks all files: the timeout between two parts of its answer.
FSCK_SECONDS = 30
_TABLES = "tables"
# The parameter `path` has the folder of a Spark table that Hive cannot read (docs/metastore.md).
_SQL = f"""
SELECT json_build_object('database', "NAME", 'name', "TBL_NAME", 'format', format,
                         'location', coalesce("PARAM_VALUE", "LOCATION"))
FROM ({questions.TABLES}) known
JOIN "TBLS" USING ("TBL_ID") JOIN "DBS" USING ("DB_ID") LEFT JOIN "SDS" USING ("SD_ID")
LEFT JOIN "SERDE_PARAMS" ON "SERDE_PARAMS"."SERDE_ID" = "SDS"."SERDE_ID" AND "PARAM_KEY" = 'path'
WHERE format <> 'view'
"""  # noqa: S608 -- of constants


def look(path: str) -> View:
    """Return a view of the cluster within LIMIT_SECONDS.

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
    cluster_status = status.status_of(cluster, answers)
    reply = answers[questions.shell(cluster.active("postgresql"))]
    namenode = answers["namenode"].then(reading.beans)
    [(_, url)] = cluster.urls({"fsck": ("namenode_http", "/fsck")})
    return View(
        status=cluster_status,
        ending=screen.result(cluster_status, time.monotonic() - began),
        datanodes=namenode.then(view.datanodes),
        files=answers["hdfs"].then(reading.beans).then(lambda beans: int(beans["FilesTotal"])),
        tables=reading.part(reply, questions.parts(reply), _TABLES).then(view.parse_tables),
        warehouse=Warehouse(
            url, str(cluster.variable("lakehouse_users")["hdfs"]), namenode.then(view.names).value or {}
        ),
    )


def count(cluster_view: View) -> Count:
    """Return the closed files of HDFS, by the tables of a view.

    Raises NameNodeError where the files are unknown, and LakehouseError where the tables are.
    """
    if cluster_view.tables.value is None:
        raise LakehouseError(f"the tables are not known: {cluster_view.tables.why}")
    return Answer(view.files_by_table(cluster_view.tables.value, files(cluster_view.warehouse)))


def files(warehouse: Warehouse) -> tuple[File, ...]:
    """Return the closed files of HDFS; NameNodeError where they are unknown."""
    query = {"ugi": warehouse.superuser, "path": "/", "files": "1", "blocks": "1", "locations": "1"}
    try:
        report = fetch(f"{warehouse.url}?{urlencode(query)}", timeout=FSCK_SECONDS, most=MOST_BYTES)
    except OSError as error:
        raise NameNodeError(f"{warehouse.url}: {error}") from error
    return named(parse_fsck(report.decode(errors="replace")), warehouse.names)


def uncounted() -> Count:
    """Return the unknown answer before the first request to the NameNode."""
    return unknown("the NameNode has not been asked yet")


def plots(path: str) -> view.Plots:
    """Return the plots of all panels, in their order."""
    endpoint = placement.read(inventory.load(path)).endpoint("prometheus")
    if endpoint is None:
        return _no_plots("no host of the group monitoring runs Prometheus")
    return tuple(read(endpoint.uri, panel) for panel in panels.every())


def unread_plots() -> view.Plots:
    """Return the unknown plots before the first request to Prometheus."""
    return _no_plots("the console has not read them yet")


def _no_plots(why: str) -> view.Plots:
    return tuple(unknown(why) for _ in panels.every())
