"""Looks at the cluster of an inventory once."""

from __future__ import annotations

import time
from pathlib import Path

from lakehouse import inventory
from ops import hosts
from ops.asking import Asker
from ops.status import placement, questions, reading
from ops.status.model import Status


def look(asker: Asker, path: str, until: float, report: Path) -> Status:
    """Return the cluster as seen until then (of the monotonic clock); `report` is its last verification.

    Raises LakehouseError where the inventory cannot be read, or has no hosts to log in to.
    """
    cluster = placement.read(inventory.load(path))
    data = {host.name: hosts.connection(host) for host in cluster.hosts}
    answers = asker.ask(data, questions.questions(cluster), until)
    return reading.status(cluster, answers, report, time.time())
