"""Readiness probes and membership of a service on the hosts of a living cluster."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lakehouse.maybe import Answer
from lakehouse.model import readiness, services
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Ready, Service
from lakehouse.remote.hosts import as_root
from lakehouse.remote.probing import Probe, Question, Reply, Shell

MEMBERS = "members"


def questions_of(cluster: Cluster, service: str, host: Host, *, alone: bool = False) -> Iterator[Question]:
    """Yield the readiness probes of a service on a host; with `alone` those that need no other host."""
    row = services.load().services[service]
    return _questions(cluster, row, readiness.ready(row, alone=alone), host)


def settled(cluster: Cluster, service: str, host: Host) -> tuple[Question, ...]:
    """Return the probes that must succeed once all steps are done."""
    row = services.load().services[service]
    return tuple(_questions(cluster, row, row.settled, host))


def leads(cluster: Cluster, service: str, host: Host) -> Iterator[Question]:
    """Yield the probe that only a leader of the service answers, under the host's name."""
    row = services.load().services[service]
    for probe in readiness.probes(cluster, row, filter(None, [row.leads]), host):
        yield Probe(host.name, probe)


def _questions(cluster: Cluster, row: Service, questions: Iterable[Ready], host: Host) -> Iterator[Question]:
    # A host whose maintenance ends with this command is started, so it is not away.
    present = replace(cluster, away=cluster.away - {host.name})
    for number, probe in enumerate(readiness.probes(present, row, questions, host)):
        name = f"ready {number}"
        if probe["kind"] == readiness.COMMAND:  # which runs on the host
            yield Shell(name, host.name, as_root(f"cd /; {shlex.join(probe['argv'])}"))
        else:
            yield Probe(name, probe)


def members_url(cluster: Cluster, service: str) -> Iterator[tuple[str, str]]:
    """Yield the URL where a leader lists the members of a service; none for a service without one."""
    if listing := services.load().services[service].members:
        yield from cluster.urls({MEMBERS: (listing.port, listing.path)})


def members(service: str, answer: Answer[Reply], host: Host) -> Answer[frozenset[str]]:
    """Return the names under which a leader lists a host's process of a service, without dead ones."""
    listing = services.load().services[service].members
    if listing is None:
        return Answer(frozenset())

    def read(reply: Reply) -> frozenset[str]:
        rows: list[dict[str, Any]] = json.loads(reply.text)[listing.value]
        matches = (
            re.fullmatch(listing.name, row["id"]) for row in rows if row.get("state", "ALIVE") == "ALIVE"
        )
        return frozenset(match[0] for match in matches if match and match[1] in {host.name, host.address})

    return answer.then(read)
