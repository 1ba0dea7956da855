"""Checks of HDFS: DataNodes, blocks, safe mode, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from lakehouse.doctor.model import Case, Check, Fault, Snapshot, judged
from lakehouse.doctor.probes import CHECKPOINT, EDITS, TRIED
from lakehouse.maybe import Answer
from lakehouse.model import endpoints
from lakehouse.status import judge, reading
from lakehouse.status.model import Hdfs, Placed
from lakehouse.validation.finding import Level
from plugins.module_utils.lakehouse.datanode_lists import STALE_SECONDS

# A nightly run and some hours; a week and a day where the inventory has its own calendar.
_CHECKPOINT_HOURS, _OWN_CALENDAR_HOURS = 30, 8 * 24
# Edits that a NameNode replays at its start, for minutes.
_MANY_EDITS = 10_000_000
_HOUR = 3600


def _case(snapshot: Snapshot, faults: Answer[tuple[Fault, ...]]) -> Iterator[Case]:
    namenode = snapshot.active("namenode")
    yield Case(namenode.host, faults, namenode)


def _counted(fault_name: str, level: Level) -> Callable[[Snapshot], Iterator[Case]]:
    """Return the check of one of the faults that a status finds in HDFS, by its name there."""

    def cases(snapshot: Snapshot) -> Iterator[Case]:
        def wrong(hdfs: Hdfs) -> Iterator[Fault]:
            [(is_faulty, fact)] = [
                (is_faulty, fact)
                for name, is_faulty, fact in judge.of_hdfs(snapshot.status, hdfs)
                if name == fault_name
            ]
            if is_faulty:
                yield Fault(fact, judge.dfsadmin(snapshot.status, "-report"), level=level)

        yield from _case(snapshot, judged(snapshot.status.hdfs, wrong))

    return cases


def _safemode(*, by_hand: bool) -> Callable[[Snapshot], Iterator[Case]]:
    """Return the check of a safe mode entered by an operator, or of one entered by HDFS itself."""

    def cases(snapshot: Snapshot) -> Iterator[Case]:
        def wrong(hdfs: Hdfs) -> Iterator[Fault]:
            if hdfs.safemode and judge.by_hand(hdfs) is by_hand:
                message = " ".join(hdfs.safemode.split()).removeprefix("Safe mode is ON.").strip()
                fact = f"nothing can be written, safe mode is on: {message.partition('. ')[0]}"
                report = judge.dfsadmin(snapshot.status, "-report")
                yield Fault(fact, judge.leave_safemode(snapshot.status) if by_hand else report, "off")

        yield from _case(snapshot, judged(snapshot.status.hdfs, wrong))

    return cases


def _image(snapshot: Snapshot) -> Iterator[Case]:
    """Check that the NameNode's folders have an image, without which it does not start."""

    def lost(folders: tuple[str, ...]) -> Iterator[Fault]:
        if folders:
            yield Fault(
                f"no image of the file system in {', '.join(folders)}",
                judge.restore(snapshot.status),
                "one in each",
            )

    namenode = snapshot.active("namenode")
    yield Case(namenode.host, judged(snapshot.status.unformatted, lost))


def _datanodes(snapshot: Snapshot) -> Iterator[Case]:
    """Check that each DataNode whose unit runs is live; checks of units report stopped ones."""

    def silent(placed: Placed, nodes: Mapping[str, Any]) -> Iterator[Fault]:
        seconds = int(nodes[placed.host]["lastContact"]) if placed.host in nodes else None
        if seconds is None or seconds >= STALE_SECONDS:
            since = "does not count it" if seconds is None else f"has not heard of it for {seconds} s"
            yield Fault(
                f"its DataNode runs, and the NameNode {since}", snapshot.restart(placed), "a live DataNode"
            )

    for placed in snapshot.settled("datanode"):
        yield Case(placed.host, judged(_live(snapshot), partial(silent, placed)), snapshot.active("namenode"))


def _live(snapshot: Snapshot) -> Answer[dict[str, Any]]:
    """Return the NameNode's live DataNodes by host."""
    nodes = snapshot.answers["namenode"].then(lambda reply: json.loads(reading.beans(reply)["LiveNodes"]))
    return nodes.then(lambda live_nodes: {name.rpartition(":")[0]: node for name, node in live_nodes.items()})


def _transfers(snapshot: Snapshot) -> dict[str, str]:
    """Return the address for block transfers of each DataNode, by host."""
    hosts = snapshot.cluster.running("datanodes")
    return {host.name: "{}:{}".format(*endpoints.on("datanode_data", host).place) for host in hosts}


def _addresses(snapshot: Snapshot) -> Iterator[Case]:
    def elsewhere(host: str, place: str, nodes: Mapping[str, Any]) -> Iterator[Fault]:
        if host in nodes and nodes[host]["xferaddr"] != place:
            yield Fault(f"the NameNode sends clients to {nodes[host]['xferaddr']}", snapshot.site, place)

    for host, place in _transfers(snapshot).items():
        yield Case(
            host, judged(_live(snapshot), partial(elsewhere, host, place)), snapshot.active("namenode")
        )


def _reach(snapshot: Snapshot) -> Iterator[Case]:
    """Check that each host can reach all running DataNodes."""
    places = _transfers(snapshot)
    running = {places[placed.host]: placed.host for placed in snapshot.settled("datanode")}

    def closed(text: str) -> Iterator[Fault]:
        *closed_places, end = text.split()
        if end != TRIED:
            raise ValueError("not every place was tried")
        for place in sorted(running.keys() & set(closed_places)):
            action = snapshot.on(running[place], "nft list ruleset")
            yield Fault(f"the DataNode of {running[place]} takes no connection from here", action, place)

    for host in snapshot.cluster.hosts:
        yield Case(host.name, judged(snapshot.part(host.name, "reach"), closed))


def _upgrade(snapshot: Snapshot) -> Iterator[Case]:
    def open_end(hdfs: Hdfs) -> Iterator[Fault]:
        if fact := judge.unfinished(snapshot.status, hdfs):
            yield Fault(fact, judge.finalize(snapshot.status), "finalized, or taken back", Level.WARNING)

    yield from _case(snapshot, judged(snapshot.status.hdfs, open_end))


def _checkpoint(snapshot: Snapshot) -> Iterator[Case]:
    placed = snapshot.active("namenode")
    has_calendar = snapshot.variable(placed.host, "hdfs_namenode_checkpoint_calendar") is not None
    hours = _OWN_CALENDAR_HOURS if has_calendar else _CHECKPOINT_HOURS

    def old(beans: Mapping[str, Any]) -> Iterator[Fault]:
        action = snapshot.on(placed.host, "systemctl start hdfs-checkpoint")
        # While it was stopped no checkpoint was due.
        age = min(snapshot.status.at - int(beans["LastCheckpointTime"]) / 1000, snapshot.age(placed))
        if age > hours * _HOUR:
            yield Fault(f"no checkpoint for {age / _HOUR:.0f} h", action, f"one in {hours} h", Level.WARNING)
        if (edits := int(beans["TransactionsSinceLastCheckpoint"])) > _MANY_EDITS:
            fact = f"{edits:,} edits since the last checkpoint make the next start long"
            yield Fault(fact, action, f"at most {_MANY_EDITS:,}", Level.WARNING)

    yield from _case(snapshot, judged(snapshot.answers[EDITS].then(reading.beans), old))


def _timer(snapshot: Snapshot) -> Iterator[Case]:
    placed = snapshot.active("namenode")

    def off(blocks: list[dict[str, str]]) -> Iterator[Fault]:
        timer, work = map({block["Id"]: block for block in blocks}.__getitem__, CHECKPOINT)
        action = snapshot.on(placed.host, "systemctl start hdfs-checkpoint")
        if timer["ActiveState"] != "active":
            yield Fault(
                f"{CHECKPOINT[0]} is {timer['ActiveState']}: the edit log only grows", snapshot.site, "active"
            )
        if work["Result"] != "success":
            yield Fault(f"the last checkpoint has failed ({work['Result']})", action)

    units = snapshot.part(placed.host, "checkpoint").then(reading.units)
    yield Case(placed.host, judged(units, off))


CHECKS = (
    Check(
        "hdfs.safemode", "a person has switched safe mode on: HDFS takes no writes", _safemode(by_hand=True)
    ),
    Check(
        "hdfs.waiting",
        "HDFS is in safe mode and takes no writes, for want of blocks or of space",
        _safemode(by_hand=False),
        "start the DataNodes that are missing, or make space on the NameNode's disk",
    ),
    Check(
        "hdfs.image",
        "a folder of the NameNode is empty",
        _image,
        "bring the folder back, or set the whole cluster back to a backup",
    ),
    Check("hdfs.datanodes", "a DataNode runs, and the NameNode does not hear of it", _datanodes),
    Check("hdfs.addresses", "clients are sent to an address that is not the DataNode's", _addresses),
    Check(
        "hdfs.reach",
        "a host does not reach a DataNode: metadata is taken there, and no data",
        _reach,
        "open the port between the two hosts",
    ),
    Check(
        "hdfs.missing",
        "a block has no replica left",
        _counted("missing", Level.FAULT),
        "bring back the disk or host that has it, or restore the file's table from a backup",
    ),
    Check(
        "hdfs.corrupt",
        "a replica of a block is not sound",
        _counted("corrupt", Level.WARNING),
        "wait until HDFS has copied a sound replica; where there is none, restore the table from a backup",
    ),
    Check(
        "hdfs.replicas",
        "a block lacks a replica",
        _counted("replicas", Level.WARNING),
        "wait until HDFS has copied it; where it wants more replicas than there are DataNodes, set fewer",
    ),
    Check(
        "hdfs.volumes",
        "a disk of a DataNode has failed",
        _counted("volumes", Level.FAULT),
        "replace the disk and restart the DataNode",
    ),
    Check(
        "hdfs.capacity",
        "HDFS is nearly full",
        _counted("capacity", Level.WARNING),
        "delete what is not needed, or add a disk or a DataNode",
    ),
    Check(
        "hdfs.upgrade",
        "another version of HDFS came in, and is not final",
        _upgrade,
        "finalize it, or roll it back",
    ),
    Check("hdfs.checkpoint", "the image is old, or many edits are not in it", _checkpoint),
    Check("hdfs.timer", "no checkpoints are made, or the last has failed", _timer),
)
