"""Read the cluster of an inventory once, and print the findings."""

from __future__ import annotations

import json
import sys
import time

from lakehouse.doctor import exporting, probes, screen
from lakehouse.doctor.diagnosis import diagnose
from lakehouse.doctor.model import Snapshot
from lakehouse.model import inventory, placement
from lakehouse.remote.probing import Prober
from lakehouse.status import look as status
from lakehouse.status import questions, reading


def look(prober: Prober, path: str, until: float) -> Snapshot:
    """Return the answers to the questions of a status and of checks, by a deadline (monotonic clock).

    Raises LakehouseError where the inventory cannot be read, or has no hosts to log in to.
    """
    cluster = placement.read(inventory.load(path))
    requests = [
        *questions.questions(cluster, probes.commands, probes.PART_SECONDS),
        *probes.extra_questions(cluster),
    ]
    answers = status.ask(prober, cluster, requests, until)
    return Snapshot(reading.present(cluster, answers), status.status_of(cluster, answers), answers)


def show(snapshot: Snapshot, began: float, *, as_json: bool, to_prometheus: bool = False) -> int:
    """Print the findings, or all as JSON; return the exit code.

    Raises LakehouseError where `to_prometheus` is set and their counts cannot be written.
    """
    diagnosis = diagnose(snapshot)
    if to_prometheus:
        exporting.export(snapshot.cluster, diagnosis)
    ending = screen.result(snapshot.status, diagnosis, time.monotonic() - began)
    text = json.dumps(ending.json()) if as_json else screen.screen(diagnosis, ending)
    sys.stdout.write(f"{text}\n")
    return int(ending.outcome)
