"""What is true of a cluster: questions to its services, and waiting until they are answered as they were."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lakehouse import endpoints, services
from lakehouse.errors import LakehouseError
from lakehouse.services import Ready
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
    """Return the probes of all that listens (a port's name, address and number), as the catalogue has them.

    Those of HTTP lack the right answer.
    """
    rows = services.load().services.values()
    asked = (*(one for row in rows for one in (*row.ready, *row.settled)), *COMPLETE)
    for name, address, port in places:
        of_port = [one for one in asked if one.port == name]
        if any(one.kind == services.THRIFT for one in of_port):
            yield {"kind": "thrift", "host": address, "port": port, "call": "get_all_databases"}
        # Followers ask their leader what it is asked itself.
        pages = dict.fromkeys((one.path, one.value) for one in of_port if one.kind == services.HTTP)
        for path, value in pages:
            page = {"kind": "http", "url": f"{endpoints.uri(name, address, port)}{path}"}
            yield page | ({"path": value} if value else {})


def answered(probe: Probe) -> Probe:
    """Return the probe with what is answered now as the right answer."""
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


def await_right(wrong: Callable[[], str | None], seconds: float = LIMIT_SECONDS) -> None:
    """Ask until nothing is wrong; raise LakehouseError with what still is after so many seconds."""
    deadline = time.monotonic() + seconds
    while (found := wrong()) is not None:
        if time.monotonic() > deadline:
            raise LakehouseError(f"the floor is not complete after {seconds:g} s: {found}", "docker ps")
        time.sleep(PAUSE_SECONDS)
