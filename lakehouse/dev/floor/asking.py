"""What is true of a cluster: questions to its services, and waiting until they are answered as they were."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lakehouse.errors import LakehouseError
from plugins.module_utils.lakehouse import probes

Probe = dict[str, Any]
PAUSE_SECONDS = 0.1
# What has not answered by then does not come.
LIMIT_SECONDS = 600
CONNECT_SECONDS = 2.0
JMX = "/jmx?qry=Hadoop:service="
SAFE_MODE = "beans.0.Safemode"
# Of whoever listens on a port: a path, and which value of the answer says that the service is complete.
QUESTIONS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "namenode_http": (
        (f"{JMX}NameNode,name=NameNodeStatus", "beans.0.State"),
        (f"{JMX}NameNode,name=NameNodeInfo", SAFE_MODE),
        (f"{JMX}NameNode,name=FSNamesystemState", "beans.0.NumLiveDataNodes"),
    ),
    "datanode_http": (
        (f"{JMX}DataNode,name=DataNodeInfo", "beans.0.ClusterId"),
        (f"{JMX}DataNode,name=DataNodeInfo", "beans.0.BPServiceActorInfo.0.ActorState"),
    ),
    "spark_master_http": (("/json/", "status"), ("/json/", "aliveworkers")),
    "spark_worker_http": (("/json/", "cores"),),
    "spark_history": (("/api/v1/applications?limit=1", "#"),),
    "trino_http": (("/v1/info", "starting"),),
    "flink_rest": (("/overview", "taskmanagers"),),
    "flink_sql_gateway": (("/v1/info", "version"),),
    "flink_history": (("/jobs/overview", "jobs.#"),),
}
# Metastores, which have no page.
THRIFT = frozenset({"metastore", "catalog_past"})
TRINO_NODES = "select count(*) from system.runtime.nodes where state = 'active'"


def probes_of(places: Iterable[tuple[str, str, int]]) -> Iterator[Probe]:
    """Return the probes of all that listens: a port's name, address and number.

    Those of HTTP lack the right answer.
    """
    for name, address, port in places:
        if name in THRIFT:
            yield {"kind": "thrift", "host": address, "port": port, "call": "get_all_databases"}
        for path, value in QUESTIONS.get(name, ()):
            yield {"kind": "http", "url": f"http://{address}:{port}{path}", "path": value}


def answered(probe: Probe) -> Probe:
    """Return the probe with what is answered now as the right answer."""
    if probe["kind"] != "http":
        return probe
    document = json.loads(probes.fetch(probe["url"]))
    return probe | {"equals": probes.lookup(document, probe["path"])}


def trino(address: str, port: int, user: str, nodes: int) -> Probe:
    """Return the question to a coordinator how many nodes it knows."""
    url = f"http://{address}:{port}"
    return {"kind": "trino", "url": url, "user": user, "query": TRINO_NODES, "equals": nodes}


def closed(address: str, port: int) -> str | None:
    """Return why nobody takes a connection there; None where somebody does."""
    try:
        socket.create_connection((address, port), CONNECT_SECONDS).close()
    except OSError as error:
        return f"{address}:{port}: {error}"
    return None


def await_right(wrong: Callable[[], str | None], seconds: float = LIMIT_SECONDS) -> None:
    """Ask until nothing is wrong; raise LakehouseError with what still is after so many seconds."""
    deadline = time.monotonic() + seconds
    while (found := wrong()) is not None:
        if time.monotonic() > deadline:
            raise LakehouseError(f"the floor is not complete after {seconds:g} s: {found}", "docker ps")
        time.sleep(PAUSE_SECONDS)
