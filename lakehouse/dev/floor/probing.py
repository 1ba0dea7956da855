"""Probes of a cluster's services, and waiting until their answers are the recorded ones."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.model import endpoints, services
from lakehouse.model.services import Ready
from plugins.module_utils.lakehouse import probes

Probe = dict[str, Any]
PAUSE_SECONDS = 0.1
# What has not answered by then does not come.
LIMIT_SECONDS = 600
CONNECT_SECONDS = 2.0
SAFE_MODE = "beans.0.Safemode"
# Beside what the catalogue asks: that no DataNode is missing.
_COUNTERS = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
COMPLETE = (Ready(services.HTTP, "namenode_http", _COUNTERS, value="beans.0.NumLiveDataNodes"),)


def probes_of(places: Iterable[tuple[str, str, int]]) -> Iterator[Probe]:
    """Return the catalogue's probes of listeners (a port's name, address and number).

    Those of HTTP lack the expected answer.
    """
    rows = services.load().services.values()
    questions = (*(question for row in rows for question in (*row.ready, *row.settled)), *COMPLETE)
    for name, address, port in places:
        of_port = [question for question in questions if question.port == name]
        if any(question.kind == services.THRIFT for question in of_port):
            yield {"kind": "thrift", "host": address, "port": port, "call": "get_all_databases"}
        # The probes of followers read their leader's pages, too.
        pages = dict.fromkeys(
            (question.path, question.value) for question in of_port if question.kind == services.HTTP
        )
        for path, value in pages:
            page = {"kind": "http", "url": f"{endpoints.uri(name, address, port)}{path}"}
            yield page | ({"path": value} if value else {})


def answered(probe: Probe) -> Probe:
    """Return the probe with the current answer as the expected one."""
    if "path" not in probe:
        return probe
    document = json.loads(probes.fetch(probe["url"]))
    return probe | {"equals": probes.lookup(document, probe["path"])}


def trino(url: str, user: str, nodes: int) -> Probe:
    """Return the question to a coordinator how many nodes it knows, and whether they can scan."""
    return {"kind": "trino", "url": url, "user": user, "nodes": nodes, "tpch": True}


def closed(address: str, port: int) -> str | None:
    """Return why no server takes a connection there; None where one does."""
    try:
        socket.create_connection((address, port), CONNECT_SECONDS).close()
    except OSError as error:
        return f"{address}:{port}: {error}"
    return None


def await_right(problem: Callable[[], str | None], seconds: float = LIMIT_SECONDS) -> None:
    """Wait until there is no problem; LakehouseError with the current one after `seconds`."""
    deadline = time.monotonic() + seconds
    while (current_problem := problem()) is not None:
        if time.monotonic() > deadline:
            raise LakehouseError(
                f"the floor is not complete after {seconds:g} s: {current_problem}", "docker ps"
            )
        time.sleep(PAUSE_SECONDS)
