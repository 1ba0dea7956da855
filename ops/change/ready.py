"""What a service answers once it serves again: rows of probes, as those that a play waits for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.inventory import Host
from ops.answer import Answer
from ops.asking import Probe, Question, Reply, Shell
from ops.status import questions
from ops.status.placement import Cluster

_NAMENODE = "/jmx?qry=Hadoop:service=NameNode,name="
_DATANODE = "/jmx?qry=Hadoop:service=DataNode,name=DataNodeInfo"


@dataclass(frozen=True)
class Hosts:
    """As many as a group has."""

    group: str


# Group, port and path of each probe over HTTP, the place in the answer, and what has to be there; None is for
# any number. The group is None for the host itself.
_Row = tuple[str | None, str, str, str, object]
_HTTP: dict[str, tuple[_Row, ...]] = {
    "namenode": (
        ("namenode", "namenode_http", f"{_NAMENODE}NameNodeStatus", "beans.0.State", "active"),
        ("namenode", "namenode_http", f"{_NAMENODE}NameNodeInfo", "beans.0.Safemode", ""),
    ),
    "datanode": (
        (None, "datanode_http", _DATANODE, "beans.0.BPServiceActorInfo.0.ActorState", "RUNNING"),
        ("namenode", "namenode_http", f"{_NAMENODE}NameNodeInfo", "beans.0.Safemode", ""),
    ),
    "spark_master": (("spark_master", "spark_master_http", "/json/", "status", "ALIVE"),),
    "spark_worker": (
        ("spark_master", "spark_master_http", "/json/", "aliveworkers", Hosts("spark_workers")),
    ),
    "spark_history": ((None, "spark_history", "/api/v1/applications?limit=1", "#", None),),
    "trino": ((None, "trino_http", "/v1/info", "starting", False),),
    "flink_jobmanager": (("flink_jobmanager", "flink_rest", "/overview", "taskmanagers", None),),
    "flink_taskmanager": (("flink_jobmanager", "flink_rest", "/overview", "taskmanagers", None),),
    "flink_sql_gateway": ((None, "flink_sql_gateway", "/v1/info", "productName", "Apache Flink"),),
    "flink_history": ((None, "flink_history", "/jobs/overview", "jobs.#", None),),
}
# The same, of what takes its time beside the next steps, and has to be so at the end.
_SETTLED: dict[str, tuple[_Row, ...]] = {
    "spark_master": (
        ("spark_master", "spark_master_http", "/json/", "aliveworkers", Hosts("spark_workers")),
    ),
    "flink_jobmanager": (
        ("flink_jobmanager", "flink_rest", "/overview", "taskmanagers", Hosts("flink_taskmanagers")),
    ),
}
# Where a leader lists its members by names that a new process does not share with the one before it: group,
# port and path, the list in the answer, and where the host stands in a name there:
# `worker-20260102030405-node1-7078`, `node1:6122-a1b2c3`.
_MEMBERS = {
    "spark_worker": (
        "spark_master", "spark_master_http", "/json/", "workers", re.compile(r"worker-[^-]+-(.+)-\d+"),
    ),
    "flink_taskmanager": (
        "flink_jobmanager", "flink_rest", "/taskmanagers", "taskmanagers", re.compile(r"(.+):\d+-.+"),
    ),
}  # fmt: skip
MEMBERS = "members"


def questions_of(cluster: Cluster, service: str, host: Host, *, alone: bool = False) -> Iterator[Question]:
    """Give what has to be answered by a service of a host, and by who leads it unless it is asked `alone`."""
    rows = _HTTP.get(service, ())
    yield from _probes(cluster, tuple(row for row in rows if row[0] is None) if alone else rows, host)
    if not alone and (special := _SPECIAL.get(service)):
        yield special(cluster, host)


def settled(cluster: Cluster, service: str, host: Host) -> tuple[Question, ...]:
    """Return what has to be answered once all steps are done."""
    return tuple(_probes(cluster, _SETTLED.get(service, ()), host))


def _probes(cluster: Cluster, rows: tuple[_Row, ...], host: Host) -> Iterator[Question]:
    for number, (group, port, path, place, wanted) in enumerate(rows):
        where = host if group is None else cluster.running(group)[0]
        url = f"http://{where.address}:{where.variables['lakehouse_ports'][port]}{path}"
        probe = {"kind": "http", "url": url, "path": place, **_wanted(cluster, wanted)}
        yield Probe(f"ready {number}", probe)


def _wanted(cluster: Cluster, wanted: object) -> dict[str, object]:
    if wanted is None:
        return {"at_least": 0}
    return {"equals": len(cluster.running(wanted.group)) if isinstance(wanted, Hosts) else wanted}


def _place(cluster: Cluster, group: str, port: str) -> dict[str, object]:
    found = cluster.address(group, port)
    return dict(zip(("host", "port"), found or (), strict=False))


def _metastore(cluster: Cluster, _: Host) -> Question:
    place = _place(cluster, "metastore", "metastore")
    return Probe("ready", {"kind": "thrift", **place, "call": "get_all_databases"})


def _past(_: Cluster, host: Host) -> Question:
    place = {"host": host.address, "port": host.variables["lakehouse_ports"]["catalog_past"]}
    return Probe("ready", {"kind": "thrift", **place, "call": "get_all_databases"})


def _postgresql(_: Cluster, host: Host) -> Question:
    return Shell("ready", host.name, questions.psql(host, "select 'alive'"))


def _connect(_: Cluster, host: Host) -> Question:
    port = host.variables["lakehouse_ports"]["spark_connect"]
    return Probe("ready", {"kind": "spark_connect", "host": host.address, "port": port})


def _thrift_server(_: Cluster, host: Host) -> Question:
    port, user = host.variables["lakehouse_ports"]["spark_thrift"], host.variables["lakehouse_users"]["spark"]
    asked = f"beeline -u jdbc:hive2://{host.address}:{port} --silent=true -e \"select 'alive'\""
    return Shell("ready", host.name, f"cd /; runuser -u {user} -- {asked}")


def _trino(cluster: Cluster, _: Host) -> Question:
    """The coordinator answers a query, and knows every node as active."""
    address, port = cluster.address("trino_coordinator", "trino_http") or ("", 0)
    nodes = {host.name for group in ("trino_coordinator", "trino_workers") for host in cluster.running(group)}
    query = "select count(*) from system.runtime.nodes where state = 'active'"
    user = str(cluster.variable("lakehouse_users")["trino"])
    url = f"http://{address}:{port}"
    return Probe("ready", {"kind": "trino", "url": url, "user": user, "query": query, "equals": len(nodes)})


_SPECIAL: Mapping[str, Callable[[Cluster, Host], Question]] = {
    "metastore": _metastore,
    "catalog_past": _past,
    "postgresql": _postgresql,
    "spark_connect": _connect,
    "spark_thrift": _thrift_server,
    "trino": _trino,
}


def members_url(cluster: Cluster, service: str) -> Iterator[tuple[str, str]]:
    """Give the address where a leader lists the members of a service; nothing where they keep their name."""
    if service in _MEMBERS:
        yield from cluster.urls({MEMBERS: _MEMBERS[service][:3]})


def members(service: str, answer: Answer[Reply], host: Host) -> Answer[frozenset[str]]:
    """Return the names by which a leader knows a host's process of a service, dead ones left out."""
    *_, place, named = _MEMBERS[service]

    def read(reply: Reply) -> frozenset[str]:
        rows: list[dict[str, Any]] = json.loads(reply.text)[place]
        found = (named.fullmatch(row["id"]) for row in rows if row.get("state", "ALIVE") == "ALIVE")
        return frozenset(one[0] for one in found if one and one[1] in {host.name, host.address})

    return answer.then(read)
