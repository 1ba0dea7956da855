"""Numbers of the hosts of a quorum: each host has its own."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.model import members, services
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.services import Numbers, Service
from lakehouse.validation.finding import Finding
from plugins.module_utils.lakehouse.nearest import nearest


def declared(host: Host) -> list[Finding]:
    """Check that the services exist for which a host is given a number, and that it is a whole number."""
    numbered = {name: row for name, row in services.load().services.items() if row.numbers}
    findings = []
    for name, value in (host.variables.get(members.VARIABLE) or {}).items():
        fact = f"{members.VARIABLE}.{name} is {value!r}"
        if name not in numbered:
            close = nearest(str(name), numbered)
            advice = f"did you mean {close}?" if close else "remove it"
            findings.append(Finding("members.number", host.name, fact, advice, "a service with numbers"))
        elif isinstance(value, bool) or not isinstance(value, int):
            findings.append(
                Finding("members.number", host.name, fact, "give it a whole number", "a whole number")
            )
    return findings


def unique(inventory: Inventory) -> list[Finding]:
    """Check that no two hosts of a service have the same number, and that each is in the service's range."""
    return [
        finding
        for row in services.load().services.values()
        if row.numbers
        for finding in _of_service(row, row.numbers, inventory)
    ]


def _of_service(row: Service, numbers: Numbers, inventory: Inventory) -> Iterator[Finding]:
    owners: dict[int, str] = {}
    expected = f"a number from {numbers.least} to {numbers.most} that no other host has"
    for host in inventory.hosts:
        if not host.groups.intersection(row.groups):
            continue
        try:
            number = members.number(row, host.name, host.variables)
        except (TypeError, ValueError):
            continue  # which `declared` names
        advice = f"set {members.VARIABLE}: {{{row.name}: NUMBER}} in the variables of {host.name}"
        if not numbers.least <= number <= numbers.most:
            fact = f"{host.name} has the number {number} in {row.name}"
            yield Finding("members.number", host.name, fact, advice, expected)
        elif number in owners:
            fact = f"{owners[number]} and {host.name} have the number {number} in {row.name}"
            yield Finding("members.number", host.name, fact, advice, expected)
        owners.setdefault(number, host.name)
