"""Looks at the cluster of an inventory once, and shows it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from lakehouse import inventory
from lakehouse.run import BUILD
from lakehouse.terminal import LINES, printable
from ops import hosts
from ops.probing import Prober, Question
from ops.status import placement, questions, reading, screen
from ops.status.model import Status
from ops.status.placement import Cluster

REPORT = BUILD / "report"
# To the upper left, and away with what was there.
_CLEAR = "\x1b[H\x1b[2J"


def look(prober: Prober, path: str, until: float) -> Status:
    """Return the cluster as seen until then (of the monotonic clock).

    Raises LakehouseError where the inventory cannot be read, or has no hosts to log in to.
    """
    cluster = placement.read(inventory.load(path))
    return status_of(cluster, ask(prober, cluster, questions.questions(cluster), until))


def ask(prober: Prober, cluster: Cluster, asked: Sequence[Question], until: float) -> reading.Answers:
    """Put questions to a cluster, over connections as Ansible makes them."""
    return prober.ask({host.name: hosts.connection(host) for host in cluster.hosts}, asked, until)


def status_of(cluster: Cluster, answers: reading.Answers) -> Status:
    """Return the cluster as the answers show it now."""
    return reading.status(cluster, answers, REPORT, time.time())


def show(status: Status, began: float, *, as_json: bool, clear: bool) -> int:
    """Print a status that was begun then, on a terminal in place of the one before; return the exit code."""
    ending = screen.result(status, time.monotonic() - began)
    shown = json.dumps(ending.json()) if as_json else printable(screen.screen(status, ending), keep=LINES)
    first = _CLEAR if clear and not as_json and sys.stdout.isatty() else ""
    sys.stdout.write(f"{first}{shown}\n")
    sys.stdout.flush()
    return int(ending.outcome)
