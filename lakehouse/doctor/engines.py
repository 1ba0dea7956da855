"""Checks of the engines: each running worker is registered with its leader."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged, settings
from lakehouse.maybe import Answer, both
from lakehouse.status import reading
from lakehouse.status.model import Placed
from plugins.module_utils.lakehouse.counting import counted

# Such as pekko.tcp://flink@node1:6122/user/rpc/taskmanager_0.
_PATH = re.compile(r"@([^:/]+)[:/]")
_SLOTS = "taskmanager.numberOfTaskSlots"


def _members(
    snapshot: Snapshot, leader: Placed, worker: str, members: Answer[Collection[str]]
) -> Iterator[Case]:
    """Yield a case for each running worker: its leader lists it by the name of its host."""

    def stranger(placed: Placed, names: Collection[str]) -> Iterator[Fault]:
        if placed.host not in names:
            fact = f"its {worker} runs, and {leader.service} on {leader.host} does not count it"
            yield Fault(fact, snapshot.restart(placed), "a worker that takes work")

    for placed in snapshot.settled(worker):
        yield Case(placed.host, judged(members, partial(stranger, placed)), leader)


def _spark(snapshot: Snapshot) -> Iterator[Case]:
    names = {host.address: host.name for host in snapshot.cluster.hosts}

    def alive(master: Mapping[str, Any]) -> Collection[str]:
        hosts = (worker["host"] for worker in master["workers"] if worker["state"] == "ALIVE")
        return {names.get(host, host) for host in hosts}

    return _members(
        snapshot, snapshot.active("spark_master"), "spark_worker", snapshot.document("spark").then(alive)
    )


def _trino(snapshot: Snapshot) -> Iterator[Case]:
    if "trino" not in snapshot.answers:
        return
    leader = snapshot.active("trino")
    names = {host.address: host.name for host in snapshot.cluster.hosts}

    def started(info: Mapping[str, Any]) -> bool:
        if info["starting"]:
            raise ValueError("the coordinator is starting")
        return True

    def alive(_: bool, nodes: Sequence[Mapping[str, Any]]) -> Collection[str]:
        healthy = (node["uri"] for node in nodes if node["recentFailureRatio"] < reading.TRINO_FAILURES)
        # The coordinator does not list itself.
        return {leader.host, *(names.get(str(urlsplit(uri).hostname), uri) for uri in healthy)}

    members = both(snapshot.document("trino").then(started), snapshot.document("trino_nodes"), alive)
    yield from _members(snapshot, leader, "trino", members)


def _taskmanagers(snapshot: Snapshot) -> Answer[dict[str, Any]]:
    """Return the TaskManagers of the JobManager, by host."""
    return snapshot.document("flink_taskmanagers").then(
        lambda page: {_host(manager["path"]): manager for manager in page["taskmanagers"]}
    )


def _host(path: str) -> str:
    match = _PATH.search(path)
    if not match:
        raise ValueError(f"no host in {path}")
    return match[1]


def _flink(snapshot: Snapshot) -> Iterator[Case]:
    if "flink" in snapshot.answers:
        members: Answer[Collection[str]] = _taskmanagers(snapshot).then(lambda managers: managers.keys())
        yield from _members(snapshot, snapshot.active("flink_jobmanager"), "flink_taskmanager", members)


def _slots(snapshot: Snapshot) -> Iterator[Case]:
    if "flink" not in snapshot.answers:
        return

    def wrong_slots(placed: Placed, managers: Mapping[str, Any], text: str) -> tuple[Fault, ...]:
        host = placed.host
        expected = int(settings(text)[_SLOTS])
        # Another check reports a missing one.
        if host not in managers or managers[host]["slotsNumber"] == expected:
            return ()
        return (
            Fault(
                f"it offers {counted(managers[host]['slotsNumber'], 'slot')}",
                snapshot.restart(placed),
                str(expected),
            ),
        )

    for placed in snapshot.settled("flink_taskmanager"):
        text = snapshot.part(placed.host, "flink_config")
        faults = both(_taskmanagers(snapshot), text, partial(wrong_slots, placed))
        yield Case(placed.host, faults, snapshot.active("flink_jobmanager") if text.known else None)


CHECKS = (
    Check("spark.workers", "a worker of Spark runs and takes no work", _spark),
    Check("trino.workers", "a worker of Trino runs and takes no work", _trino),
    Check("flink.taskmanagers", "a TaskManager runs and takes no work", _flink),
    Check("flink.slots", "a TaskManager offers other slots than its file says", _slots),
)
