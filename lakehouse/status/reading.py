"""Parse the answers of a cluster into its status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, both, unknown
from lakehouse.model import placement
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service
from lakehouse.remote.probing import Reply
from lakehouse.report import record
from lakehouse.status import questions
from lakehouse.status.model import (
    Database,
    Disk,
    Engine,
    Hdfs,
    LastGood,
    Machine,
    Memory,
    Placed,
    Status,
    Tables,
    Unit,
    Verified,
)
from plugins.module_utils.lakehouse import away, hdfs_gate

Answers = Mapping[str, Answer[Reply]]
_KIB = 1024
# Trino's failure detector excludes a node above this ratio.
TRINO_FAILURES = 0.1
_QUEUED = frozenset({"QUEUED", "WAITING_FOR_RESOURCES"})
_ENDED = frozenset({"FINISHED", "FAILED"})


def status(cluster: Cluster, answers: Answers, report: Path, at: float) -> Status:
    """Return the status of a cluster from the answers; `report` is the folder of the last verification."""
    marks = _marks(cluster, answers)
    resting = _resting(cluster, marks)
    cluster = _present(cluster, marks)
    replies = {host.name: answers[questions.shell(host)] for host in cluster.hosts}
    parts = {name: questions.parts(reply) for name, reply in replies.items()}
    database = next((host.name for host in cluster.running("postgresql")), "")
    name = str(cluster.variable("lakehouse_cluster"))
    return Status(
        cluster=name,
        inventory=str(cluster.inventory.path),
        profile=str(cluster.variable("lakehouse_profile")),
        at=at,
        machines=tuple(_machine(host, replies[host.name], parts[host.name]) for host in cluster.hosts),
        services=tuple(
            _placed(service, host.name, part(replies[host.name], parts[host.name], "units").then(units))
            for host in cluster.hosts
            for service in cluster.services[host.name]
        ),
        datanodes=len(cluster.running("datanodes")),
        hdfs=_hdfs(answers),
        metastore=answers[questions.METASTORE].then(lambda _: True),
        database=part(replies[database], parts[database], "database").then(tables),
        engines=dict(_engines(cluster, answers)),
        verified=verified(report, name),
        clock_limit=cluster.clock_limit,
        superuser=str(cluster.variable("lakehouse_users")["hdfs"]),
        unformatted=_unformatted(cluster, replies, parts),
        backup=_backup(cluster, replies, parts),
        history=_history(cluster, replies, parts),
        snapshots=_snapshots(answers),
        away=marks,
        resting=resting,
    )


def _resting(cluster: Cluster, marks: Mapping[str, Answer[away.Mark]]) -> tuple[str, ...]:
    """Return the hosts in maintenance whose DataNode is not expected to be live."""
    present_hosts = {host.name for host in _present(cluster, marks).hosts}
    in_maintenance = {
        name for name, mark in marks.items() if (mark.value or {}).get("state") == away.MAINTENANCE
    }
    return tuple(
        host.name for host in cluster.running("datanodes") if host.name in in_maintenance - present_hosts
    )


def present(cluster: Cluster, answers: Answers) -> Cluster:
    """Return the cluster without the hosts that are away, except the only hosts of a service."""
    return _present(cluster, _marks(cluster, answers))


def _marks(cluster: Cluster, answers: Answers) -> dict[str, Answer[away.Mark]]:
    """Return the mark of each host: from the host itself, or from the notes on the NameNode's host."""
    replies = {host.name: answers[questions.shell(host)] for host in cluster.hosts}
    parts = {name: questions.parts(reply) for name, reply in replies.items()}
    host_marks = {name: part(reply, parts[name], "away").then(away.read) for name, reply in replies.items()}
    namenode = next((host.name for host in cluster.running("namenode")), None)
    all_notes = part(replies[namenode], parts[namenode], "notes").then(away.notes).value if namenode else None
    notes = {name: note for name, note in (all_notes or {}).items() if name in host_marks}
    return host_marks | {name: Answer(away.of(host_marks[name].value, note)) for name, note in notes.items()}


def _present(cluster: Cluster, marks: Mapping[str, Answer[away.Mark]]) -> Cluster:
    away_hosts = {name for name, answer in marks.items() if answer.value}
    remaining = placement.without(cluster, away_hosts)
    serving = {row for host in remaining.hosts for row in remaining.services[host.name]}
    removable = {name for name in away_hosts if set(cluster.services[name]) <= serving}
    return placement.without(cluster, removable)


def part(reply: Answer[Reply], parts: Mapping[str, Answer[str]], name: str) -> Answer[str]:
    """Return the output of a part of a host's script; unknown where the host or the part failed."""
    no_answer: Answer[str] = unknown(reply.why or "the host ended before it was asked")
    return parts.get(name, no_answer)


def _unformatted(
    cluster: Cluster, replies: Answers, parts: Mapping[str, Mapping[str, Answer[str]]]
) -> Answer[tuple[str, ...]]:
    host = next((host.name for host in cluster.running("namenode")), None)
    return part(replies[host], parts[host], "unformatted").then(parse_list) if host else Answer(())


def parse_list(text: str) -> tuple[str, ...]:
    """Parse a list of lines with an end mark."""
    *lines, end = text.strip().splitlines()
    if end != questions.END:
        raise ValueError("the list has no end")
    return tuple(lines)


def _backup(
    cluster: Cluster, replies: Answers, parts: Mapping[str, Mapping[str, Answer[str]]]
) -> Answer[LastGood | None]:
    backup_host = next((host.name for host in cluster.hosts if questions.backups(host)), None)
    return (
        part(replies[backup_host], parts[backup_host], "backup").then(parse_backup)
        if backup_host
        else Answer(None)
    )


def _history(
    cluster: Cluster, replies: Answers, parts: Mapping[str, Mapping[str, Answer[str]]]
) -> Answer[LastGood | None]:
    history_host = next((host.name for host in cluster.hosts if questions.commits(host)), None)
    return (
        part(replies[history_host], parts[history_host], "history").then(parse_commit)
        if history_host
        else Answer(None)
    )


def _snapshots(answers: Answers) -> Answer[int]:
    if questions.CONTENT not in answers:
        return Answer(0)
    return answers[questions.CONTENT].then(
        lambda reply: int(json.loads(reply.text)["ContentSummary"]["snapshotSpaceConsumed"])
    )


def parse_commit(text: str) -> LastGood:
    """Parse the result of the last scheduled commit; empty before the first."""
    if not text.strip():
        return LastGood(None, "")
    result = json.loads(text)
    return LastGood(None if result["good"] is None else float(result["good"]), str(result["why"]))


def parse_backup(text: str) -> LastGood:
    """Parse the result of the last backup; empty before the first."""
    if not text.strip():
        return LastGood(None, "")
    result = json.loads(text)
    name = str(result["good"])
    good = datetime.strptime(name, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() if name else None
    return LastGood(good, str(result["why"]), tuple(map(str, result.get("damaged") or ())))


def _machine(host: Host, reply: Answer[Reply], parts: Mapping[str, Answer[str]]) -> Machine:
    def output(name: str) -> Answer[str]:
        return part(reply, parts, name)

    prefix = str(host.variables["lakehouse_install_dir"])
    return Machine(
        name=host.name,
        address=host.address,
        answer=reply.then(lambda _: True),
        uptime=output("uptime").then(lambda text: float(text.split()[0])),
        memory=output("memory").then(memory),
        disks=output("disks").then(lambda text: disks(text, questions.folders(host))),
        offset=output("began").then(lambda began: offset(reply, float(began), output("ended"))),
        releases=output("releases").then(lambda text: releases(text, prefix)),
    )


def offset(reply: Answer[Reply], began: float, ended: Answer[str]) -> float:
    """Return the least possible clock difference: 0 where the latency may explain it."""
    if reply.value is None or ended.value is None:
        raise ValueError("it did not say when it ended")
    least, most = float(ended.value) - reply.value.ended, began - reply.value.began
    return max(least, min(most, 0.0))


def units(text: str) -> list[dict[str, str]]:
    """Parse the blocks of `systemctl show`."""
    blocks = (block.splitlines() for block in text.strip().split("\n\n"))
    return [dict(line.split("=", 1) for line in block if "=" in line) for block in blocks if block]


def _placed(service: Service, host: str, properties: Answer[list[dict[str, str]]]) -> Placed:
    unit = placement.unit(service)
    return Placed(
        service=service.name,
        unit=unit,
        host=host,
        # The kit's own programs are in a folder of their role; a package of Debian has its own account.
        release=service.release or ("" if service.account else service.role),
        needed=placement.needed(service),
        state=properties.then(
            lambda blocks: _unit(next(block for block in blocks if block["Id"] == f"{unit}.service"))
        ),
    )


def _unit(properties: Mapping[str, str]) -> Unit:
    since = properties.get("ActiveEnterTimestamp", "").removeprefix("@")
    return Unit(
        load=properties["LoadState"],
        active=properties["ActiveState"],
        sub=properties["SubState"],
        pid=int(properties.get("MainPID") or 0),
        restarts=int(properties.get("NRestarts") or 0),
        since=float(since) if since and since != "0" else None,
        enabled=properties["UnitFileState"] != "disabled",
    )


def memory(text: str) -> Memory:
    """Parse /proc/meminfo."""
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return Memory(*(int(rows[name].split()[0]) * _KIB for name in ("MemTotal", "MemAvailable")))


def disks(text: str, folders: list[str]) -> tuple[Disk, ...]:
    """Parse `df`, a line per folder; folders of one file system are one disk, named after the first.

    Raises ValueError where one of the folders is missing.
    """
    disks_by_mount: dict[str, Disk] = {}
    missing = set(folders)
    for line in text.strip().splitlines()[1:]:
        total, available, mounted, folder = line.split(maxsplit=3)
        missing.discard(folder)
        disks_by_mount.setdefault(mounted, Disk(folder, int(total), int(available)))
    if missing:
        raise ValueError(f"df does not show {', '.join(sorted(missing))}")
    return tuple(disks_by_mount.values())


def releases(text: str, prefix: str) -> dict[str, str]:
    """Parse the version that each component's `current` links to."""
    return {name: release.rpartition("-")[0] for name, release in builds(text, prefix).items()}


def builds(text: str, prefix: str) -> dict[str, str]:
    """Parse the release that each component's `current` links to: version, and digest of its archive."""
    links = (line.split(" ", 1) for line in text.strip().splitlines())
    return {
        link.removeprefix(f"{prefix}/").split("/")[0]: target.rsplit("/", 1)[-1] for link, target in links
    }


def _hdfs(answers: Answers) -> Answer[Hdfs]:
    return both(answers["hdfs"].then(beans), answers["namenode"].then(beans), _counted)


def beans(reply: Reply) -> dict[str, Any]:
    """Parse Hadoop's answer of JMX: the attributes of all beans together."""
    return hdfs_gate.beans(reply.text)


def upgrade(info: Mapping[str, Any]) -> float | None:
    """Return when an unfinalized upgrade of HDFS was prepared; None without one."""
    rolling_upgrade = info["RollingUpgradeStatus"]
    return (
        int(rolling_upgrade["startTime"]) / 1000
        if rolling_upgrade and not int(rolling_upgrade["finalizeTime"])
        else None
    )


def _counted(counters: Mapping[str, Any], info: Mapping[str, Any]) -> Hdfs:
    return Hdfs(
        capacity=int(counters["CapacityTotal"]),
        used=int(counters["CapacityUsed"]),
        remaining=int(counters["CapacityRemaining"]),
        # Without DataNodes that are in maintenance or leaving.
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
    """Parse the rows of the database: its version, and a row per format."""
    rows = [line.split("|") for line in text.strip().splitlines()]
    version = next(row[1] for row in rows if row[0] == "version").split()[0]
    table_counts = [
        Tables(row[0], int(row[1]), int(row[2]) / 1000 if row[2] else None)
        for row in rows
        if row[0] != "version"
    ]
    return Database(version, tuple(sorted(table_counts, key=lambda row: row.format)))


def _engines(cluster: Cluster, answers: Answers) -> list[tuple[str, Answer[Engine]]]:
    engines: list[tuple[str, Answer[Engine]]] = [
        ("spark", answers["spark"].then(lambda reply: _spark(reply, len(cluster.running("spark_workers")))))
    ]
    if "trino" in answers:
        engines.append(("trino", _trino(cluster, answers)))
    if "flink" in answers:
        members = len(cluster.running("flink_taskmanagers"))
        engines.append(("flink", answers["flink"].then(lambda reply: _flink(reply, members))))
    return engines


def _spark(reply: Reply, placed: int) -> Engine:
    master = json.loads(reply.text)
    alive = [worker for worker in master["workers"] if worker["state"] == "ALIVE"]
    cores = sum(int(worker["cores"]) for worker in alive)
    counts = {
        "cores": cores,
        "cores used": int(master["coresused"]),
        "applications": len(master["activeapps"]),
    }
    return Engine("spark", len(alive), placed, counts)


def _trino(cluster: Cluster, answers: Answers) -> Answer[Engine]:
    """Return the state of Trino; the coordinator does not list itself, and may be a worker."""
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
    return both(alive, counts, lambda number, metrics: Engine("trino", number, len(workers), metrics))


def _flink(reply: Reply, placed: int) -> Engine:
    overview = json.loads(reply.text)
    counts = {
        "slots": int(overview["slots-total"]),
        "slots free": int(overview["slots-available"]),
        "jobs": int(overview["jobs-running"]),
    }
    return Engine("flink", int(overview["taskmanagers"]), placed, counts)


def verified(report: Path, cluster: str) -> Answer[Verified | None]:
    """Return the last verification of this cluster; None without one."""
    path = report / "summary.json"
    if not path.exists():
        return Answer(None)
    try:
        summary = record.load(path, "make smoke")
        if summary["cluster"].text("name") != cluster:
            return Answer(None)
        return Answer(
            Verified(
                summary.text("result"), summary.text("generated"), summary["tests"]["counts"].count("passed")
            )
        )
    except LakehouseError as error:
        return unknown(error.message)
