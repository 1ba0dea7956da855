"""Readiness probes and membership of a service on the hosts of a living cluster."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lakehouse import readiness, services
from lakehouse.inventory import Host
from lakehouse.services import Ready, Service
from ops.hosts import as_root
from ops.maybe import Answer
from ops.probing import Probe, Question, Reply, Shell
from ops.status.placement import Cluster

MEMBERS = "members"


def questions_of(cluster: Cluster, service: str, host: Host, *, alone: bool = False) -> Iterator[Question]:
    """Give what a service of a host has to answer before the next step, or by itself `alone`."""
    row = services.load().services[service]
    return _questions(cluster, row, readiness.ready(row, alone=alone), host)


def settled(cluster: Cluster, service: str, host: Host) -> tuple[Question, ...]:
    """Return what has to be answered once all steps are done."""
    row = services.load().services[service]
    return tuple(_questions(cluster, row, row.settled, host))


def leads(cluster: Cluster, service: str, host: Host) -> Iterator[Question]:
    """Give what only the host of a service that leads answers, by the host's name."""
    row = services.load().services[service]
    for probe in readiness.probes(cluster, row, filter(None, [row.leads]), host):
        yield Probe(host.name, probe)


def _questions(cluster: Cluster, row: Service, questions: Iterable[Ready], host: Host) -> Iterator[Question]:
    # A host whose maintenance this command ends is started, so it counts.
    with_it = replace(cluster, away=cluster.away - {host.name})
    for number, probe in enumerate(readiness.probes(with_it, row, questions, host)):
        name = f"ready {number}"
        if probe["kind"] == readiness.COMMAND:  # which runs on the host
            yield Shell(name, host.name, as_root(f"cd /; {shlex.join(probe['argv'])}"))
        else:
            yield Probe(name, probe)


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
