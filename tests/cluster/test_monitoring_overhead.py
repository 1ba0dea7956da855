"""What monitoring costs: TPC-H while Prometheus scrapes and while it is halted, query by query in turn."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from suites.matrix.tpch import bench
from suites.matrix.tpch.queries import QUERIES
from suites.testbed.engines.trino import Trino
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.drill, pytest.mark.longdrill]

# The first one warms both up, and is not counted.
ROUNDS = 9
MOST_RATIO = 1.03
# Of all units, on the three hosts of the tests.
MOST_MEMORY_MIB = 768
UNITS = (
    "lakehouse-prometheus",
    "lakehouse-alertmanager",
    "lakehouse-node-exporter",
    "lakehouse-postgres-exporter",
    "lakehouse-probe-exporter",
)
MIB = 1 << 20


def totals(machines: Machines, name: str) -> int:
    """Return the sum of a counter of systemd over the units of all hosts; those that do not run have none."""
    texts = [
        machine.run(f"systemctl show --property={name} --value {' '.join(UNITS)}")
        for machine in machines.values()
    ]
    # Without a process a unit has the largest number of 64 bits, or no number.
    numbers = [int(word) for text in texts for word in text.split() if word.isdecimal()]
    return sum(number for number in numbers if number < 1 << 62)


def signal_prometheus(machine: Machine, number: signal.Signals) -> None:
    machine.run(f"systemctl kill --signal={number.name} {UNITS[0]}")


def seconds(answer: Callable[[], Any]) -> float:
    started = time.monotonic()
    answer()
    return time.monotonic() - started


def test_queries_are_as_fast_while_prometheus_scrapes(
    cluster: Inventory, machines: Machines, trino: Trino, record_property: Callable[[str, object], None]
) -> None:
    prometheus = machines[placement.read(cluster).active("prometheus").name]
    times: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    began, used = time.monotonic(), totals(machines, "CPUUsageNSec")
    try:
        with bench.tables(trino) as database:
            # While the tables were made, Prometheus was scraping all the time.
            cores = (totals(machines, "CPUUsageNSec") - used) / 1e9 / (time.monotonic() - began)
            trino.sql(f"USE iceberg.{database}")
            for number in range(ROUNDS):
                for query in QUERIES:
                    # Each comes first in every second round.
                    for scrapes in sorted(times, reverse=number % 2 == 0):
                        signal_prometheus(prometheus, signal.SIGCONT if scrapes else signal.SIGSTOP)
                        spent = seconds(partial(trino.sql, bench.text(query)))
                        if number:
                            times[scrapes].setdefault(query.name, []).append(spent)
    finally:
        signal_prometheus(prometheus, signal.SIGCONT)
    memory = totals(machines, "MemoryCurrent") / MIB
    ratio = statistics.geometric_mean(
        statistics.median(times[True][query.name]) / statistics.median(times[False][query.name])
        for query in QUERIES
    )
    note = f"{ratio:.3f} of the time; {cores:.2f} cores and {memory:.0f} MiB on all hosts"
    record_property("note", note)
    assert ratio <= MOST_RATIO, (note, times)
    assert memory <= MOST_MEMORY_MIB
