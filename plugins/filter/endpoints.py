"""Filters that derive hosts and URIs of services from services.yml and the inventory.

``uri`` and ``uris`` take the name of a listener, a key of lakehouse_ports, ``active_host`` that of a service:
``'metastore' | uris | join(',')``. lakehouse/model/endpoints.py does the same for Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleFilterError
from jinja2 import pass_context
from jinja2.runtime import Context

from lakehouse.errors import LakehouseError
from lakehouse.model import endpoints, members, play, readiness, services
from lakehouse.model.services import Listener, Service

# Probes that need no account of the service's host. A query of Trino would be one of its history each time.
_REMOTE = frozenset({services.HTTP, services.THRIFT, services.SPARK_CONNECT})


def _members(context: Context, service: Service) -> list[str]:
    """Return the hosts on which clients reach a service, in the order of the inventory."""
    return list(context["groups"].get(service.groups[0], ()))


def _active(context: Context, service: Service) -> str:
    return endpoints.first(service, _members(context, service))


def _uri(context: Context, name: str, host: str, at: str) -> str:
    host_variables = context.get("hostvars", {}).get(host, {}) if at else {}
    if at and at not in host_variables:
        raise AnsibleFilterError(f"no {at} of host {host} for the URI of {name}; set it in the inventory")
    return endpoints.uri(name, host_variables[at] if at else host, context["lakehouse_ports"][name])


@contextmanager
def _faults() -> Iterator[None]:
    """Have a fault of the library fail the template."""
    try:
        yield
    except LakehouseError as error:
        raise AnsibleFilterError(str(error)) from error


@pass_context
def active_host(context: Context, service: str) -> str:
    """Return the host of a service that serves clients; fail where its group has no host."""
    with _faults():
        return _active(context, endpoints.service(service))


@pass_context
def uri(context: Context, name: str, host: str = "", at: str = "") -> str:
    """Return the URI of a listener on a host, or on the one that serves clients.

    ``at`` is a variable of that host to name it by, such as ``ansible_host``; its inventory name if empty.
    """
    with _faults():
        return _uri(context, name, host or _active(context, endpoints.owner(name)), at)


@pass_context
def uris(context: Context, name: str, at: str = "") -> list[str]:
    """Return the URIs of a listener on all hosts on which clients reach it, each as ``uri``."""
    with _faults():
        return [_uri(context, name, host, at) for host in _members(context, endpoints.owner(name))]


@pass_context
def member_number(context: Context, service: str, host: str = "") -> int:
    """Return the number of a host, or of the play's own, among the hosts of a service."""
    name = host or str(context["inventory_hostname"])
    with _faults():
        return members.number(endpoints.service(service), name, context["hostvars"][name])


@pass_context
def scrape_configs(context: Context, settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the scrape configurations of Prometheus: a job for each listener that serves metrics.

    A job is named after its service, or after a further listener of it with metrics, and its targets have the
    label ``host``. ``settings`` has what a job has besides, by its name.
    """
    targets: dict[tuple[Service, Listener], list[dict[str, Any]]] = {}
    for host in context["groups"]["all"]:
        host_variables = context["hostvars"][host]
        for service in play.running(context, host):
            for listener in service.listeners:
                if listener.metrics is not None:
                    address = f"{host_variables['ansible_host']}:{context['lakehouse_ports'][listener.name]}"
                    target = {"targets": [address], "labels": {"host": host}}
                    targets.setdefault((service, listener), []).append(target)
    return [
        {
            "job_name": _job(service, listener),
            "scheme": listener.uri_scheme,
            "metrics_path": listener.metrics,
            "static_configs": static,
            **settings.get(_job(service, listener), {}),
        }
        for (service, listener), static in targets.items()
    ]


def _job(service: Service, listener: Listener) -> str:
    first = next(row for row in service.listeners if row.metrics is not None)
    return service.name if listener == first else listener.name


@pass_context
def probe_targets(context: Context, hosts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the targets of the exporter of services' answers: the services on these hosts.

    Each has ``job`` (the service), ``host``, ``probes`` for module_utils/lakehouse/probes.py, which are its
    readiness questions, and, where a listener has TLS, ``certificate`` with its protocol, host and port.
    """
    values = {name: context[name] for name in (*play.SHARED, play.PROFILE) if name in context}
    cluster = play.evaluated(values, context["groups"], context["hostvars"], context["inventory_hostname"])
    members = {host.name: host for hosts in cluster.groups.values() for host in hosts}
    targets = []
    with _faults():
        for name in hosts:
            for service in play.running(context, name):
                questions = [
                    question
                    for question in service.ready
                    if question.kind in _REMOTE and service.listens_on(question.port)
                ]
                probes = list(readiness.probes(cluster, service, questions, members[name]))
                certificate = _certificate(context, service, members[name])
                if probes or certificate:
                    targets.append({"job": service.name, "host": name, "probes": probes, **certificate})
    return targets


def _certificate(context: Context, service: Service, host: play.Host) -> dict[str, Any]:
    for listener in service.listeners:
        if listener.tls or (listener.protocol == "postgresql" and context["postgresql_tls"]):
            place = {"host": host.address, "port": context["lakehouse_ports"][listener.name]}
            return {"certificate": {"protocol": listener.protocol, **place}}
    return {}


def endpoints_of(
    members: Mapping[str, Sequence[str]], addresses: Mapping[str, str], ports: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return ``host``, ``address``, ``port`` and, where its protocol has them, URIs of each listener.

    ``uri`` has the address of the host, ``internal_uri`` its name. ``members`` are the hosts of each group; a
    listener without a host is left out.
    """
    return {
        name: {
            "host": endpoint.host,
            "address": endpoint.address,
            "port": endpoint.port,
            **({"uri": endpoint.uri, "internal_uri": endpoint.internal_uri} if endpoint.scheme else {}),
        }
        for name, endpoint in endpoints.by_listener(members, addresses, ports).items()
    }


def http_sections(catalogue: Mapping[str, Any], listeners: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``host`` and ``http`` of each service that names a listener as http; None if it has no host."""
    names = {name: row["http"] for name, row in catalogue["services"].items() if "http" in row}
    return {
        name: {"host": listeners[listener]["host"], "http": listeners[listener]["uri"]}
        if listener in listeners
        else None
        for name, listener in names.items()
    }


class FilterModule:
    """What playbooks may use."""

    def filters(self) -> dict[str, Any]:
        """Name to function."""
        return {
            "active_host": active_host,
            "endpoints_of": endpoints_of,
            "http_sections": http_sections,
            "member_number": member_number,
            "probe_targets": probe_targets,
            "scrape_configs": scrape_configs,
            "uri": uri,
            "uris": uris,
        }
