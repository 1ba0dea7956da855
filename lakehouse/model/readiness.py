"""Readiness probes of a service on a host: module_utils/lakehouse/probes.py runs them. Pure.

`services.yml` is their only source: playbooks and docker compose get them through the lookup `ready_of`,
`lakehouse restart` and the other commands through `lakehouse/rolling/ready.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from lakehouse.model import endpoints, services
from lakehouse.model.endpoints import Endpoint
from lakehouse.model.services import Announce, Ready, Service
from plugins.module_utils.lakehouse.probes import AUTHORITY

Probe = dict[str, Any]
COMMAND = "command"
# PostgreSQL's account is Debian's: its row has no user.
_POSTGRES = "postgres"


class Host(endpoints.Placed, Protocol):
    """A host of the inventory."""

    @property
    def groups(self) -> frozenset[str]:
        """Its groups."""


class Cluster(Protocol):
    """The hosts by group, as far as the profile places services on them."""

    def active(self, service: str) -> Host:
        """Return the host of a service that serves clients."""

    def running(self, group: str) -> tuple[Host, ...]:
        """Return the hosts of a group."""

    def serving(self, group: str) -> tuple[Host, ...]:
        """Return the hosts of a group that are not in maintenance."""

    @property
    def away(self) -> frozenset[str]:
        """The names of the hosts in maintenance."""


def ready(service: Service, *, alone: bool) -> tuple[Ready, ...]:
    """Return the readiness questions of a service, for the time before work on the next host begins.

    `alone` excludes questions that depend on processes which may not run yet: a first converge starts them
    later, and in an upgrade their leader refuses another version.
    """
    excluded = services.JOINED if alone else services.ALONE
    return tuple(question for question in service.ready if question.asked != excluded)


def probes(cluster: Cluster, service: Service, questions: Iterable[Ready], host: Host) -> Iterator[Probe]:
    """Give the probe of each question to a service of a host."""
    for question in questions:
        yield _KINDS[question.kind](cluster, service, question, host)


def gate(cluster: Cluster, service: Service, host: Host) -> Iterator[Probe]:
    """Give the probe of the gate that has to be open before a service of a host that serves is stopped."""
    if service.gate is None:
        return
    datanodes = {member.name: member.address for group in service.groups for member in cluster.running(group)}
    variables = host.variables
    yield {
        "kind": "hdfs_gate",
        "gate": service.gate.kind,
        "url": _endpoint(cluster, service, service.gate.port, host).uri,
        "user": str(variables["lakehouse_users"][service.user]),
        "host": host.name,
        "datanodes": datanodes,
        "replication": int(variables.get("hdfs_replication") or min(services.REPLICATION, len(datanodes))),
    }


def before_stop(announce: Announce, host: endpoints.Placed) -> list[str]:
    """Return the command that a service's user runs before a unit of a host stops, as its words."""
    place = endpoints.on(announce.port, host)
    return shlex.split(announce.command.format(place=shlex.quote(f"{place.host}:{place.port}")))


def _endpoint(cluster: Cluster, service: Service, port: str, host: Host) -> Endpoint:
    """Return where a port is asked: the host's own, or that of the host whose service clients reach."""
    if not (service.listens_on(port) and host.groups.intersection(service.groups)):
        host = cluster.active(endpoints.owner(port).name)
    return endpoints.on(port, host)


def _place(cluster: Cluster, service: Service, port: str, host: Host) -> Probe:
    endpoint = _endpoint(cluster, service, port, host)
    return {"host": endpoint.address, "port": endpoint.port}


def _http(cluster: Cluster, service: Service, question: Ready, host: Host) -> Probe:
    endpoint = _endpoint(cluster, service, question.port, host)
    expected: Mapping[str, Any] = {
        "equals": question.equals,
        "among": question.among and list(question.among),
        "at_least": question.at_least,
    }
    if question.hosts:
        # Units of a host in maintenance mode may run: a boot starts them.
        expected = {"at_least" if cluster.away else "equals": len(cluster.serving(question.hosts))}
    fields = {"path": question.value, **expected}
    return {
        "kind": "http",
        "url": f"{endpoint.uri}{question.path}",
        **({"authority": host.variables[AUTHORITY]} if endpoints.listener(endpoint.listener).tls else {}),
        **{name: value for name, value in fields.items() if value is not None},
    }


def _thrift(cluster: Cluster, service: Service, question: Ready, host: Host) -> Probe:
    return {"kind": "thrift", **_place(cluster, service, question.port, host), "call": "get_all_databases"}


def _connect(cluster: Cluster, service: Service, question: Ready, host: Host) -> Probe:
    return {"kind": "spark_connect", **_place(cluster, service, question.port, host)}


def _trino(cluster: Cluster, service: Service, question: Ready, host: Host) -> Probe:
    """The coordinator, on the host of the first group, counts every node and can place a scan on them."""
    serving, running = (
        len({member.name for group in service.groups for member in members(group)})
        for members in (cluster.serving, cluster.running)
    )
    overrides = host.variables.get("trino_catalog_properties", {})
    return {
        "kind": "trino",
        "url": endpoints.on(question.port, cluster.active(service.name)).uri,
        "user": str(host.variables["lakehouse_users"][service.user]),
        "nodes": serving,
        **({"most": running} if cluster.away else {}),
        "tpch": overrides.get("tpch", {}) is not None,
    }


def _psql(cluster: Cluster, service: Service, question: Ready, host: Host) -> Probe:
    port = str(_place(cluster, service, question.port, host)["port"])
    query = ["psql", "--port", port, "-U", _POSTGRES, "-XAtqc", "select 'alive'"]
    return _command(host, _POSTGRES, query)


def _beeline(cluster: Cluster, service: Service, question: Ready, host: Host) -> Probe:
    url = _endpoint(cluster, service, question.port, host).uri
    account = str(host.variables["lakehouse_users"][service.user])
    return _command(host, account, ["beeline", "-u", url, "--silent=true", "-e", "select 'alive'"])


def _command(host: Host, account: str, argv: list[str]) -> Probe:
    """A command of an account. On nodes root runs it; a container of docker compose is the account's."""
    on_nodes = host.variables.get("lakehouse_target", "nodes") == "nodes"
    change = ["runuser", "-u", account, "--"] if on_nodes else []
    return {"kind": COMMAND, "argv": [*change, *argv], "prints": "alive"}


_KINDS: Mapping[str, Callable[[Cluster, Service, Ready, Host], Probe]] = {
    services.HTTP: _http,
    services.THRIFT: _thrift,
    services.SPARK_CONNECT: _connect,
    services.TRINO: _trino,
    services.PSQL: _psql,
    services.BEELINE: _beeline,
}
