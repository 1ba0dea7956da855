"""What a service answers once it serves again, as its row of the catalogue says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakehouse import services
from lakehouse.inventory import Host
from lakehouse.services import Ready, Service
from ops.answer import Answer
from ops.probing import Probe, Question, Reply, Shell
from ops.status import questions
from ops.status.placement import Cluster

MEMBERS = "members"


def questions_of(cluster: Cluster, service: str, host: Host, *, alone: bool = False) -> Iterator[Question]:
    """Give what has to be answered by a service of a host, and by who leads it unless it is asked `alone`."""
    row = services.load().services[service]
    asked = (one for one in row.ready if not (alone and _of_others(row, one)))
    return _questions(cluster, row, asked, host)


def settled(cluster: Cluster, service: str, host: Host) -> tuple[Question, ...]:
    """Return what has to be answered once all steps are done."""
    row = services.load().services[service]
    return tuple(_questions(cluster, row, iter(row.settled), host))


def _questions(cluster: Cluster, row: Service, asked: Iterator[Ready], host: Host) -> Iterator[Question]:
    # Who is being started counts, also in the verb that ends its maintenance.
    with_it = replace(cluster, away=cluster.away - {host.name})
    for number, one in enumerate(asked):
        yield _KINDS[one.kind](with_it, row, one, host, f"ready {number}")


def _of_others(row: Service, asked: Ready) -> bool:
    """Tell whether another host answers: one of another service, or the coordinator."""
    return asked.kind == services.TRINO or not row.listens_on(asked.port)


def _place(cluster: Cluster, row: Service, port: str, host: Host) -> dict[str, Any]:
    """Return where a port is asked: the host's own, or that of the first host that has the service."""
    if not row.listens_on(port):
        host = cluster.running(services.load().owner(port).groups[0])[0]
    return {"host": host.address, "port": host.variables["lakehouse_ports"][port]}


def _http(cluster: Cluster, row: Service, asked: Ready, host: Host, name: str) -> Question:
    url = "http://{host}:{port}".format(**_place(cluster, row, asked.port, host))
    counted: Mapping[str, Any] = {"equals": asked.equals, "at_least": asked.at_least}
    if asked.hosts:
        # What is in maintenance may run: a boot starts it.
        counted = {"at_least" if cluster.away else "equals": len(cluster.serving(asked.hosts))}
    wanted = {"path": asked.value, **counted}
    told = {key: value for key, value in wanted.items() if value is not None}
    return Probe(name, {"kind": "http", "url": f"{url}{asked.path}", **told})


def _thrift(cluster: Cluster, row: Service, asked: Ready, host: Host, name: str) -> Question:
    place = _place(cluster, row, asked.port, host)
    return Probe(name, {"kind": "thrift", **place, "call": "get_all_databases"})


def _connect(cluster: Cluster, row: Service, asked: Ready, host: Host, name: str) -> Question:
    return Probe(name, {"kind": "spark_connect", **_place(cluster, row, asked.port, host)})


def _psql(_cluster: Cluster, _row: Service, _asked: Ready, host: Host, name: str) -> Question:
    return Shell(name, host.name, questions.server_psql(host, "select 'alive'"))


def _beeline(cluster: Cluster, row: Service, asked: Ready, host: Host, name: str) -> Question:
    place, user = _place(cluster, row, asked.port, host), host.variables["lakehouse_users"][row.user]
    url = "jdbc:hive2://{host}:{port}".format(**place)
    said = f"beeline -u {url} --silent=true -e \"select 'alive'\""
    return Shell(name, host.name, f"cd /; runuser -u {user} -- {said}")


def _trino(cluster: Cluster, row: Service, asked: Ready, _host: Host, name: str) -> Question:
    """The coordinator, a host of the first group, knows every node and can place a scan on them."""
    coordinator = cluster.endpoint(asked.port)
    nodes, most = (
        len({host.name for group in row.groups for host in among(group)})
        for among in (cluster.serving, cluster.running)
    )
    user = str(cluster.variable("lakehouse_users")[row.user])
    url = coordinator.uri if coordinator else ""
    overrides = cluster.hosts[0].variables.get("trino_catalog_properties", {})
    tpch = overrides.get("tpch", {}) is not None
    probe = {"kind": "trino", "url": url, "user": user, "nodes": nodes, "most": most, "tpch": tpch}
    return Probe(name, probe)


_KINDS: Mapping[str, Callable[[Cluster, Service, Ready, Host, str], Question]] = {
    services.HTTP: _http,
    services.THRIFT: _thrift,
    services.SPARK_CONNECT: _connect,
    services.TRINO: _trino,
    services.PSQL: _psql,
    services.BEELINE: _beeline,
}


def members_url(cluster: Cluster, service: str) -> Iterator[tuple[str, str]]:
    """Give the address where a leader lists the members of a service; nothing where they keep their name."""
    if listed := services.load().services[service].members:
        yield from cluster.urls({MEMBERS: (listed.port, listed.path)})


def members(service: str, answer: Answer[Reply], host: Host) -> Answer[frozenset[str]]:
    """Return the names by which a leader knows a host's process of a service, dead ones left out."""
    listed = services.load().services[service].members
    if listed is None:
        return Answer(frozenset())

    def read(reply: Reply) -> frozenset[str]:
        rows: list[dict[str, Any]] = json.loads(reply.text)[listed.value]
        found = (re.fullmatch(listed.name, row["id"]) for row in rows if row.get("state", "ALIVE") == "ALIVE")
        return frozenset(one[0] for one in found if one and one[1] in {host.name, host.address})

    return answer.then(read)
