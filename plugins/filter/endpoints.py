"""Filters that derive hosts and URIs of services from services.yml and the inventory.

A filter takes the name of a listener, a key of lakehouse_ports: ``'metastore' | uris | join(',')``.
lakehouse/endpoints.py does the same for Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from jinja2 import pass_context
from jinja2.runtime import Context

from lakehouse import endpoints
from lakehouse.errors import LakehouseError


def _members(context: Context, name: str) -> list[str]:
    """Return the hosts on which clients reach a listener, in the order of the inventory."""
    try:
        group = endpoints.groups(name)[0]
    except LakehouseError as error:
        raise AnsibleFilterError(str(error)) from error
    return list(context["groups"].get(group, ()))


@pass_context
def active_host(context: Context, name: str) -> str:
    """Return the host of a listener that serves clients; fail where its group has no host."""
    members = _members(context, name)
    if not members:
        group = endpoints.groups(name)[0]
        raise AnsibleFilterError(f"no host in group {group}; add one to it in the inventory")
    return members[0]


@pass_context
def uri(context: Context, name: str, host: str = "", at: str = "") -> str:
    """Return the URI of a listener on a host, or on the one that serves clients.

    ``at`` is a variable of that host to name it by, such as ``ansible_host``; its inventory name if empty.
    """
    member = host or active_host(context, name)
    known = context.get("hostvars", {}).get(member, {}) if at else {}
    if at and at not in known:
        raise AnsibleFilterError(f"no {at} of host {member} for the URI of {name}; set it in the inventory")
    try:
        return endpoints.uri(name, known[at] if at else member, context["lakehouse_ports"][name])
    except LakehouseError as error:
        raise AnsibleFilterError(str(error)) from error


@pass_context
def uris(context: Context, name: str, at: str = "") -> list[str]:
    """Return the URIs of a listener on all hosts on which clients reach it, each as ``uri``."""
    return [uri(context, name, host, at) for host in _members(context, name)]


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


def http_sections(catalogue: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``host`` and ``http`` of each service that names a listener as http; None if it has no host."""
    names = {name: row["http"] for name, row in catalogue["services"].items() if "http" in row}
    return {
        name: {"host": found[listener]["host"], "http": found[listener]["uri"]} if listener in found else None
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
            "uri": uri,
            "uris": uris,
        }
