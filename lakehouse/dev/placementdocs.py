"""The placement table in docs/architecture.md: who runs what, and what it answers, from the catalogue."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from lakehouse import run
from lakehouse.errors import LakehouseError
from lakehouse.model import readiness, services
from lakehouse.model.services import Catalogue, Ready, Service

PAGE = run.ROOT / "docs" / "architecture.md"
_TABLE = re.compile(r"(<!-- services:start[^\n]*-->\n).*?(<!-- services:end -->)", re.DOTALL)
_HEAD = ("Group", "Hosts", "Unit", "User", "What it answers before a restart goes on")
_HOSTS = {
    services.ONE: "one",
    services.AT_MOST_ONE: "none, or one",
    services.SOME: "one or more",
    services.PAIR: "none, or two",
    services.OPTIONAL: "none, or more",
    services.QUORUM: "none, or an odd number from three",
}
# What is asked in the protocol of a service, and not in its row.
_ANSWERS: Mapping[str, str] = {
    services.THRIFT: "the call `get_all_databases` returns",
    services.SPARK_CONNECT: "it says its version",
    services.TRINO: "the coordinator counts every node and places a scan on them",
    services.PSQL: "a query returns",
    services.BEELINE: "a query returns",
}


def page(text: str) -> str:
    """Return the page with the table of the catalogue; LakehouseError if it has no place for it."""
    if not _TABLE.search(text):
        raise LakehouseError(f"{PAGE.name} has no place for the services", f"git checkout {PAGE}")
    return _TABLE.sub(lambda match: f"{match[1]}\n{table(services.load())}\n{match[2]}", text)


def table(catalogue: Catalogue) -> str:
    """Return a row for each service."""
    rows = [_HEAD, *(_row(catalogue, service) for service in catalogue.services.values())]
    head, *body = (f"| {' | '.join(row)} |\n" for row in rows)
    return "".join([head, f"|{'---|' * len(_HEAD)}\n", *body])


def _row(catalogue: Catalogue, service: Service) -> tuple[str, ...]:
    user = f"`{catalogue.users[service.user].account}`" if service.user else f"`{service.account}`"
    return (
        ", ".join(f"`{group}`" for group in service.groups),
        "; ".join(dict.fromkeys(_HOSTS[catalogue.groups[group].hosts] for group in service.groups)),
        f"`{service.unit}`" + ("; off unless switched on" if service.switch else ""),
        user,
        ", ".join(_answers(catalogue, service)),
    )


def _answers(catalogue: Catalogue, service: Service) -> Iterator[str]:
    for probe in readiness.ready(service, alone=False):
        yield _answer(catalogue, service, probe)
    for probe in service.settled:
        yield f"at the end {_answer(catalogue, service, probe)}"


def _answer(catalogue: Catalogue, service: Service, probe: Ready) -> str:
    """Return the expected answer in words; a value is named by the last part of its path.

    >>> catalogue = services.load()
    >>> namenode, datanode = catalogue.services["namenode"], catalogue.services["datanode"]
    >>> _answer(catalogue, namenode, namenode.ready[0]), _answer(catalogue, datanode, namenode.ready[1])
    ('`State` is `active`', '`Safemode` of `hdfs-namenode` is empty')
    """
    if probe.kind != services.HTTP:
        return _ANSWERS[probe.kind]
    owner = catalogue.owner(probe.port)
    names = [part for part in (probe.value or "").split(".") if part != "#"]
    name = names[-1] if any(names) else probe.path.partition("?")[0]
    subject = f"`{name}`" + (f" of `{owner.unit}`" if owner != service else "")
    if probe.hosts:
        return f"{subject} counts `{probe.hosts}`"
    if probe.equals is not None:
        value = json.dumps(probe.equals).strip('"')
        return f"{subject} is {f'`{value}`' if value else 'empty'}"
    return f"{subject} answers"
