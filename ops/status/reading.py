"""From what was answered to the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lakehouse.errors import LakehouseError
from lakehouse.inventory import Host
from lakehouse.report import record
from lakehouse.services import Service
from ops.maybe import Answer, both, unknown
from ops.probing import Reply
from ops.status import placement, questions
from ops.status.model import (
    Database,
    Disk,
    Engine,
    Hdfs,
    Kept,
    Machine,
    Memory,
    Placed,
    Status,
    Tables,
    Unit,
    Verified,
)
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import away, hdfs_gate

Answers = Mapping[str, Answer[Reply]]
_KIB = 1024
# The failure detector of Trino gives up a node above it.
TRINO_FAILURES = 0.1
_QUEUED = frozenset({"QUEUED", "WAITING_FOR_RESOURCES"})
_ENDED = frozenset({"FINISHED", "FAILED"})


def status(cluster: Cluster, answers: Answers, report: Path, at: float) -> Status:
    """Return the cluster as the answers show it; `report` is the folder of the last verification."""
    marks = _marks(cluster, answers)
    resting = _resting(cluster, marks)
    cluster = _present(cluster, marks)
    seen = {host.name: answers[questions.shell(host)] for host in cluster.hosts}
    parts = {name: questions.parts(reply) for name, reply in seen.items()}
    database = next((host.name for host in cluster.running("postgresql")), "")
    name = str(cluster.variable("lakehouse_cluster"))
    return Status(
        cluster=name,
        inventory=str(cluster.inventory.path),
        profile=str(cluster.variable("lakehouse_profile")),
        at=at,
        machines=tuple(_machine(host, seen[host.name], parts[host.name]) for host in cluster.hosts),
        services=tuple(
            _placed(service, host.name, part(seen[host.name], parts[host.name], "units").then(units))
            for host in cluster.hosts
            for service in cluster.services[host.name]
        ),
        datanodes=len(cluster.running("datanodes")),
        hdfs=_hdfs(answers),
        metastore=answers[questions.METASTORE].then(lambda _: True),
        database=part(seen[database], parts[database], "database").then(tables),
        engines=dict(_engines(cluster, answers)),
        verified=verified(report, name),
        clock_limit=cluster.clock_limit,
        superuser=str(cluster.variable("lakehouse_users")["hdfs"]),
        unformatted=_unformatted(cluster, seen, parts),
        backup=_backup(cluster, seen, parts),
        history=_history(cluster, seen, parts),
        snapshots=_snapshots(answers),
        away=marks,
        resting=resting,
    )


def _resting(cluster: Cluster, marks: Mapping[str, Answer[away.Mark]]) -> tuple[str, ...]:
    """Return the hosts in maintenance whose DataNode is none of those that are expected to be live."""
    names = {host.name for host in _present(cluster, marks).hosts}
    rests = {name for name, one in marks.items() if (one.value or {}).get("state") == away.MAINTENANCE}
    return tuple(host.name for host in cluster.running("datanodes") if host.name in rests - names)


def present(cluster: Cluster, answers: Answers) -> Cluster:
    """Return the cluster without the hosts that are away, but for those that alone run something."""
    return _present(cluster, _marks(cluster, answers))


def _marks(cluster: Cluster, answers: Answers) -> dict[str, Answer[away.Mark]]:
    """Return the mark of each host: its own, or that of which the NameNode's host has a note."""
    replies = {host.name: answers[questions.shell(host)] for host in cluster.hosts}
    parts = {name: questions.parts(reply) for name, reply in replies.items()}
    own = {name: part(reply, parts[name], "away").then(away.read) for name, reply in replies.items()}
    keeper = next((host.name for host in cluster.running("namenode")), None)
    noted = part(replies[keeper], parts[keeper], "notes").then(away.notes).value if keeper else None
    notes = {name: note for name, note in (noted or {}).items() if name in own}
    return own | {name: Answer(away.of(own[name].value, note)) for name, note in notes.items()}


def _present(cluster: Cluster, marks: Mapping[str, Answer[away.Mark]]) -> Cluster:
    gone = {name for name, answer in marks.items() if answer.value}
    left = placement.without(cluster, gone)
    serving = {row for host in left.hosts for row in left.services[host.name]}
    spared = {name for name in gone if set(cluster.services[name]) <= serving}
    return placement.without(cluster, spared)


def part(reply: Answer[Reply], parts: Mapping[str, Answer[str]], name: str) -> Answer[str]:
    """Return what a part of a host's script printed; unknown where the host, or that part, did not answer."""
    silent: Answer[str] = unknown(reply.why or "the host ended before it was asked")
    return parts.get(name, silent)


def _unformatted(
    cluster: Cluster, seen: Answers, parts: Mapping[str, Mapping[str, Answer[str]]]
) -> Answer[tuple[str, ...]]:
    host = next((host.name for host in cluster.running("namenode")), None)
    return part(seen[host], parts[host], "unformatted").then(listed) if host else Answer(())


def listed(text: str) -> tuple[str, ...]:
    """Read a list of lines that says where it ends."""
    *lines, end = text.strip().splitlines()
    if end != questions.END:
        raise ValueError("the list has no end")
    return tuple(lines)


def _backup(
    cluster: Cluster, seen: Answers, parts: Mapping[str, Mapping[str, Answer[str]]]
) -> Answer[Kept | None]:
    keeper = next((host.name for host in cluster.hosts if questions.backups(host)), None)
    return part(seen[keeper], parts[keeper], "backup").then(kept) if keeper else Answer(None)


def _history(
    cluster: Cluster, seen: Answers, parts: Mapping[str, Mapping[str, Answer[str]]]
) -> Answer[Kept | None]:
    keeper = next((host.name for host in cluster.hosts if questions.commits(host)), None)
    return part(seen[keeper], parts[keeper], "history").then(committed) if keeper else Answer(None)


def _snapshots(answers: Answers) -> Answer[int]:
    if questions.CONTENT not in answers:
        return Answer(0)
    return answers[questions.CONTENT].then(
        lambda reply: int(json.loads(reply.text)["ContentSummary"]["snapshotSpaceConsumed"])
    )


def committed(text: str) -> Kept:
    """Read what the last commit by the clock left for those who look; nothing is before the first."""
    if not text.strip():
        return Kept(None, "")
    said = json.loads(text)
    return Kept(None if said["good"] is None else float(said["good"]), str(said["why"]))


def kept(text: str) -> Kept:
    """Read what the last backup left for those who look; nothing is before the first."""
    if not text.strip():
        return Kept(None, "")
    said = json.loads(text)
    name = str(said["good"])
    made = datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() if name else None
    return Kept(made, str(said["why"]), tuple(map(str, said.get("damaged") or ())))


def _machine(host: Host, reply: Answer[Reply], parts: Mapping[str, Answer[str]]) -> Machine:
    def said(name: str) -> Answer[str]:
        return part(reply, parts, name)

    prefix = str(host.variables["lakehouse_install_dir"])
    return Machine(
        name=host.name,
        address=host.address,
        answer=reply.then(lambda _: True),
        uptime=said("uptime").then(lambda text: float(text.split()[0])),
        memory=said("memory").then(memory),
        disks=said("disks").then(lambda text: disks(text, questions.folders(host))),
        offset=said("began").then(lambda began: offset(reply, float(began), said("ended"))),
        releases=said("releases").then(lambda text: releases(text, prefix)),
    )


def offset(reply: Answer[Reply], began: float, ended: Answer[str]) -> float:
    """Return by how much a clock is at least ahead of ours: 0 where the journey may explain all of it."""
    if reply.value is None or ended.value is None:
        raise ValueError("it did not say when it ended")
    least, most = float(ended.value) - reply.value.ended, began - reply.value.began
    return max(least, min(most, 0.0))


def units(text: str) -> list[dict[str, str]]:
    """Read the blocks of `systemctl show`."""
    blocks = (block.splitlines() for block in text.strip().split("\n\n"))
    return [dict(line.split("=", 1) for line in block if "=" in line) for block in blocks if block]


def _placed(service: Service, host: str, shown: Answer[list[dict[str, str]]]) -> Placed:
    unit = placement.unit(service)
    return Placed(
        service=service.name,
        unit=unit,
        host=host,
        # The kit's own programs lie in a folder of their role.
        release=service.release or service.role,
        needed=placement.needed(service),
        state=shown.then(lambda blocks: _unit(next(one for one in blocks if one["Id"] == f"{unit}.service"))),
    )


def _unit(shown: Mapping[str, str]) -> Unit:
    since = shown.get("ActiveEnterTimestamp", "").removeprefix("@")
    return Unit(
        load=shown["LoadState"],
        active=shown["ActiveState"],
        sub=shown["SubState"],
        pid=int(shown.get("MainPID") or 0),
        restarts=int(shown.get("NRestarts") or 0),
        since=float(since) if since and since != "0" else None,
        enabled=shown["UnitFileState"] != "disabled",
    )


def memory(text: str) -> Memory:
    """Read /proc/meminfo."""
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return Memory(*(int(rows[name].split()[0]) * _KIB for name in ("MemTotal", "MemAvailable")))


def disks(text: str, folders: list[str]) -> tuple[Disk, ...]:
    """Read `df`, a line per folder; folders of one file system are one disk, that of the first of them.

    Raises ValueError where it does not show one of these folders.
    """
    found: dict[str, Disk] = {}
    missing = set(folders)
    for line in text.strip().splitlines()[1:]:
        total, available, mounted, folder = line.split(maxsplit=3)
        missing.discard(folder)
        found.setdefault(mounted, Disk(folder, int(total), int(available)))
    if missing:
        raise ValueError(f"df does not show {', '.join(sorted(missing))}")
    return tuple(found.values())


def releases(text: str, prefix: str) -> dict[str, str]:
    """Read which version each component's `current` leads to."""
    return {name: release.rpartition("-")[0] for name, release in builds(text, prefix).items()}


def builds(text: str, prefix: str) -> dict[str, str]:
    """Read which release each component's `current` leads to: its version, and the digest of its archive."""
    links = (line.split(" ", 1) for line in text.strip().splitlines())
    return {
        link.removeprefix(f"{prefix}/").split("/")[0]: target.rsplit("/", 1)[-1] for link, target in links
    }


def _hdfs(answers: Answers) -> Answer[Hdfs]:
    return both(answers["hdfs"].then(beans), answers["namenode"].then(beans), _counted)


def beans(reply: Reply) -> dict[str, Any]:
    """Read what Hadoop answers over JMX: the attributes of all beans together."""
    return hdfs_gate.beans(reply.text)


def upgrade(info: Mapping[str, Any]) -> float | None:
    """Return since when an upgrade of HDFS is prepared and not finalized; None where none is."""
    found = info["RollingUpgradeStatus"]
    return int(found["startTime"]) / 1000 if found and not int(found["finalizeTime"]) else None


def _counted(counters: Mapping[str, Any], info: Mapping[str, Any]) -> Hdfs:
    return Hdfs(
        capacity=int(counters["CapacityTotal"]),
        used=int(counters["CapacityUsed"]),
        remaining=int(counters["CapacityRemaining"]),
        # One in maintenance, or that leaves, is none that serves.
        live=int(counters["NumInServiceLiveDataNodes"]),
        dead=int(counters["NumDeadDataNodes"]),
        stale=int(counters["NumStaleDataNodes"]),
        failed_volumes=int(counters["VolumeFailuresTotal"]),
        blocks=int(counters["BlocksTotal"]),
        missing=int(info["NumberOfMissingBlocks"]),
        corrupt=int(counters["CorruptReplicatedBlocks"]) + int(counters["CorruptECBlockGroups"]),
        low=int(counters["LowRedundancyBlocks"]),
        safemode=str(info["Safemode"]),
        upgrade=upgrade(info),
        living=tuple(name.rpartition(":")[0] for name in json.loads(info["LiveNodes"])),
    )


def tables(text: str) -> Database:
    """Read the rows of the database: its version, and a row per format."""
    rows = [line.split("|") for line in text.strip().splitlines()]
    version = next(row[1] for row in rows if row[0] == "version").split()[0]
    found = [
        Tables(row[0], int(row[1]), int(row[2]) / 1000 if row[2] else None)
        for row in rows
        if row[0] != "version"
    ]
    return Database(version, tuple(sorted(found, key=lambda one: one.format)))


def _engines(cluster: Cluster, answers: Answers) -> list[tuple[str, Answer[Engine]]]:
    found: list[tuple[str, Answer[Engine]]] = [
        ("spark", answers["spark"].then(lambda reply: _spark(reply, len(cluster.running("spark_workers")))))
    ]
    if "trino" in answers:
        found.append(("trino", _trino(cluster, answers)))
    if "flink" in answers:
        members = len(cluster.running("flink_taskmanagers"))
        found.append(("flink", answers["flink"].then(lambda reply: _flink(reply, members))))
    return found


def _spark(reply: Reply, placed: int) -> Engine:
    said = json.loads(reply.text)
    alive = [worker for worker in said["workers"] if worker["state"] == "ALIVE"]
    cores = sum(int(worker["cores"]) for worker in alive)
    counts = {"cores": cores, "cores used": int(said["coresused"]), "applications": len(said["activeapps"])}
    return Engine("spark", len(alive), placed, counts)


def _trino(cluster: Cluster, answers: Answers) -> Answer[Engine]:
    """The coordinator watches the others; it counts itself where it is a worker."""
    coordinator = cluster.active("trino")
    workers = cluster.running("trino_workers")
    watched = {host.address for host in workers if host != coordinator}

    def members(reply: Reply) -> int:
        nodes = json.loads(reply.text)
        alive = {
            urlsplit(node["uri"]).hostname for node in nodes if node["recentFailureRatio"] < TRINO_FAILURES
        }
        return len(watched & alive) + (coordinator in workers)

    def queries(reply: Reply) -> dict[str, int]:
        states = [query["state"] for query in json.loads(reply.text)]
        queued = sum(state in _QUEUED for state in states)
        return {"queries running": sum(state not in _QUEUED | _ENDED for state in states), "queued": queued}

    starting = answers["trino"].then(lambda reply: bool(json.loads(reply.text)["starting"]))
    if starting.value:
        return unknown("the coordinator is starting")
    alive = both(starting, answers["trino_nodes"], lambda _, reply: members(reply))
    counts = answers["trino_queries"].then(queries)
    return both(alive, counts, lambda number, known: Engine("trino", number, len(workers), known))


def _flink(reply: Reply, placed: int) -> Engine:
    said = json.loads(reply.text)
    counts = {
        "slots": int(said["slots-total"]),
        "slots free": int(said["slots-available"]),
        "jobs": int(said["jobs-running"]),
    }
    return Engine("flink", int(said["taskmanagers"]), placed, counts)


def verified(report: Path, cluster: str) -> Answer[Verified | None]:
    """Return the last verification of this cluster; None where there is none."""
    path = report / "summary.json"
    if not path.exists():
        return Answer(None)
    try:
        said = record.load(path, "make smoke")
        if said["cluster"].text("name") != cluster:
            return Answer(None)
        return Answer(
            Verified(said.text("result"), said.text("generated"), said["tests"]["counts"].count("passed"))
        )
    except LakehouseError as error:
        return unknown(error.message)
