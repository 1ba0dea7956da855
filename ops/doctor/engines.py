"""Checks of the engines: each worker whose unit runs takes work."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from ops.doctor.model import Case, Check, Fault, Seen, judged, settings
from ops.maybe import Answer, both
from ops.status import reading
from ops.status.model import Placed
from plugins.module_utils.lakehouse.counting import counted

# Such as pekko.tcp://flink@node1:6122/user/rpc/taskmanager_0.
_PATH = re.compile(r"@([^:/]+)[:/]")
_SLOTS = "taskmanager.numberOfTaskSlots"


def _members(seen: Seen, leader: Placed, worker: str, known: Answer[Collection[str]]) -> Iterator[Case]:
    """Give a case for each worker that runs: its leader counts it, by the name of its host."""

    def stranger(placed: Placed, names: Collection[str]) -> Iterator[Fault]:
        if placed.host not in names:
            fact = f"its {worker} runs, and {leader.service} on {leader.host} does not count it"
            yield Fault(fact, seen.restart(placed), "a worker that takes work")

    for placed in seen.settled(worker):
        yield Case(placed.host, judged(known, partial(stranger, placed)), leader)


def _spark(seen: Seen) -> Iterator[Case]:
    names = {host.address: host.name for host in seen.cluster.hosts}

    def alive(said: Mapping[str, Any]) -> Collection[str]:
        hosts = (worker["host"] for worker in said["workers"] if worker["state"] == "ALIVE")
        return {names.get(host, host) for host in hosts}

    return _members(seen, seen.active("spark_master"), "spark_worker", seen.document("spark").then(alive))


def _trino(seen: Seen) -> Iterator[Case]:
    if "trino" not in seen.answers:
        return
    leader = seen.active("trino")
    names = {host.address: host.name for host in seen.cluster.hosts}

    def started(info: Mapping[str, Any]) -> bool:
        if info["starting"]:
            raise ValueError("the coordinator is starting")
        return True

    def alive(_: bool, nodes: Sequence[Mapping[str, Any]]) -> Collection[str]:
        well = (node["uri"] for node in nodes if node["recentFailureRatio"] < reading.TRINO_FAILURES)
        # The coordinator watches the others.
        return {leader.host, *(names.get(str(urlsplit(uri).hostname), uri) for uri in well)}

    known = both(seen.document("trino").then(started), seen.document("trino_nodes"), alive)
    yield from _members(seen, leader, "trino", known)


def _taskmanagers(seen: Seen) -> Answer[dict[str, Any]]:
    """The TaskManagers that the JobManager counts, by host."""
    return seen.document("flink_taskmanagers").then(
        lambda said: {_host(one["path"]): one for one in said["taskmanagers"]}
    )


def _host(path: str) -> str:
    found = _PATH.search(path)
    if not found:
        raise ValueError(f"no host in {path}")
    return found[1]


def _flink(seen: Seen) -> Iterator[Case]:
    if "flink" in seen.answers:
        known: Answer[Collection[str]] = _taskmanagers(seen).then(lambda found: found.keys())
        yield from _members(seen, seen.active("flink_jobmanager"), "flink_taskmanager", known)


def _slots(seen: Seen) -> Iterator[Case]:
    if "flink" not in seen.answers:
        return

    def other(placed: Placed, managers: Mapping[str, Any], text: str) -> tuple[Fault, ...]:
        host = placed.host
        expected = int(settings(text)[_SLOTS])
        # One that is missing is said as such.
        if host not in managers or managers[host]["slotsNumber"] == expected:
            return ()
        return (
            Fault(
                f"it offers {counted(managers[host]['slotsNumber'], 'slot')}",
                seen.restart(placed),
                str(expected),
            ),
        )

    for placed in seen.settled("flink_taskmanager"):
        text = seen.part(placed.host, "flink_config")
        found = both(_taskmanagers(seen), text, partial(other, placed))
        yield Case(placed.host, found, seen.active("flink_jobmanager") if text.known else None)


CHECKS = (
    Check("spark.workers", "a worker of Spark runs and takes no work", _spark),
    Check("trino.workers", "a worker of Trino runs and takes no work", _trino),
    Check("flink.taskmanagers", "a TaskManager runs and takes no work", _flink),
    Check("flink.slots", "a TaskManager offers other slots than its file says", _slots),
)
