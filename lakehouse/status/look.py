"""Read the status of an inventory's cluster once, and print it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from lakehouse.model import inventory, placement
from lakehouse.model.placement import Cluster
from lakehouse.remote import hosts
from lakehouse.remote.probing import Prober, Question
from lakehouse.run import BUILD
from lakehouse.status import questions, reading, screen
from lakehouse.status.model import Status
from lakehouse.terminal import LINES, printable

REPORT = BUILD / "report"
# Move the cursor to the upper left, and clear the screen.
_CLEAR = "\x1b[H\x1b[2J"


def look(prober: Prober, path: str, until: float) -> Status:
    """Return the status of the cluster by a deadline (monotonic clock).

    Raises LakehouseError where the inventory cannot be read, or has no hosts to log in to.
    """
    cluster = placement.read(inventory.load(path))
    return status_of(cluster, ask(prober, cluster, questions.questions(cluster), until))


def ask(prober: Prober, cluster: Cluster, requests: Sequence[Question], until: float) -> reading.Answers:
    """Ask questions of a cluster, over connections with Ansible's settings."""
    return prober.ask({host.name: hosts.connection(host) for host in cluster.hosts}, requests, until)


def status_of(cluster: Cluster, answers: reading.Answers) -> Status:
    """Return the status of a cluster from the answers, at the current time."""
    return reading.status(cluster, answers, REPORT, time.time())


def show(status: Status, began: float, *, as_json: bool, clear: bool) -> int:
    """Print a status, on a terminal in place of the previous one if `clear`; return the exit code."""
    ending = screen.result(status, time.monotonic() - began)
    text = json.dumps(ending.json()) if as_json else printable(screen.screen(status, ending), keep=LINES)
    first = _CLEAR if clear and not as_json and sys.stdout.isatty() else ""
    sys.stdout.write(f"{first}{text}\n")
    sys.stdout.flush()
    return int(ending.outcome)
