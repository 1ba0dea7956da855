"""Looks at the cluster of an inventory once, and says what is wrong."""

from __future__ import annotations

import json
import sys
import time

from lakehouse import inventory
from ops.doctor import probes, screen
from ops.doctor.diagnosis import diagnose
from ops.doctor.model import Seen
from ops.probing import Prober
from ops.status import look as status
from ops.status import placement, questions, reading


def look(prober: Prober, path: str, until: float) -> Seen:
    """Return what was answered until then (of the monotonic clock), to the questions of a status and to more.

    Raises LakehouseError where the inventory cannot be read, or has no hosts to log in to.
    """
    cluster = placement.read(inventory.load(path))
    asked = [*questions.questions(cluster, probes.commands, probes.PART_SECONDS), *probes.more(cluster)]
    answers = status.ask(prober, cluster, asked, until)
    return Seen(reading.present(cluster, answers), status.seen(cluster, answers), answers)


def show(seen: Seen, began: float, *, as_json: bool) -> int:
    """Print the findings, or all of it for programs; return the exit code."""
    diagnosis = diagnose(seen)
    ending = screen.result(seen.status, diagnosis, time.monotonic() - began)
    said = json.dumps(ending.json()) if as_json else screen.screen(diagnosis, ending)
    sys.stdout.write(f"{said}\n")
    return int(ending.outcome)
