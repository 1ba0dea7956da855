"""Faults that the inventory alone gives away, found before any machine is contacted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lakehouse.artifacts.manifest import Manifest
from lakehouse.model.inventory import Host, Inventory
from lakehouse.validation import (
    cluster,
    flink,
    identity,
    limits,
    memory,
    network,
    numbers,
    overrides,
    owned,
    postgresql,
    promises,
    secrets,
    sizes,
    topology,
    trino,
    units,
    upkeep,
    variables,
)
from lakehouse.validation.duplicates import twice
from lakehouse.validation.finding import Finding, Level, collapse, of_level, report
from lakehouse.validation.replaced import replaced
from lakehouse.validation.variables import Undefined

__all__ = [
    "Finding",
    "Level",
    "Undefined",
    "collapse",
    "identity",
    "memory",
    "of_level",
    "replaced",
    "report",
    "twice",
    "validate",
]


def validate(inventory: Inventory, specs: Iterable[Mapping[str, Any]], manifest: Manifest) -> list[Finding]:
    """Return the findings of all checks, each once; a valid inventory has none.

    ``specs`` are the parsed ``meta/argument_specs.yml`` of all roles.
    """
    options = variables.options(specs)
    findings = [*topology.group_sizes(inventory), *trino.groups(inventory), *flink.groups(inventory)]
    findings += topology.unused(inventory, findings)
    findings += network.shared_addresses(inventory) + network.alike(inventory)
    typed_hosts: list[Host] = []
    for host in inventory.hosts:
        findings += network.host_name(host) + network.host_address(host)
        findings += variables.unknown(host, options) + variables.missing(host, options)
        findings += variables.undefined(host, options) + trino.shared_secret(host)
        typed, type_findings = variables.check_types(host, options)
        findings += type_findings + variables.sizes(typed, options)
        findings += (
            network.public_address(typed)
            + network.ports(typed, host.variables.get("ansible_port"))
            + topology.replication(typed, inventory)
            + numbers.declared(typed)
        )
        findings += cluster.names(typed) + cluster.accounts(typed, host.variables.get("ansible_user"))
        findings += cluster.paths(typed) + cluster.root(typed)
        findings += secrets.checked(typed, options) + secrets.exposed(typed, options)
        findings += cluster.databases(typed) + postgresql.clients(typed)
        findings += postgresql.settings(typed) + postgresql.keys(typed)
        findings += trino.query(typed) + trino.catalogs(typed)
        findings += trino.keys(typed) + trino.secrets(typed)
        findings += overrides.keys(typed) + owned.contradictions(typed)
        findings += promises.undone(typed, inventory)
        findings += units.keys(typed) + units.java(typed, manifest.versions)
        findings += limits.least(typed) + limits.more_than_host(typed)
        findings += sizes.factors(typed) + sizes.room(typed) + sizes.executors(typed)
        findings += upkeep.policies(typed)
        findings += flink.memory(typed) + flink.parallelism(typed, inventory) + flink.config(typed)
        findings += cluster.versions(typed, manifest.pairs, manifest.versions)
        typed_hosts.append(typed)
    typed_inventory = replace(inventory, hosts=tuple(typed_hosts))
    findings += (
        postgresql.connections(typed_inventory)
        + sizes.uneven(typed_inventory)
        + numbers.unique(typed_inventory)
    )
    return collapse(findings, [host.name for host in inventory.hosts])
