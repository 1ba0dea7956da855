"""Checks of HDFS: DataNodes, blocks, safe mode, checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from lakehouse import endpoints
from lakehouse.validation.finding import Level
from ops.doctor.model import Case, Check, Fault, Seen, judged
from ops.doctor.probes import CHECKPOINT, EDITS, TRIED
from ops.maybe import Answer
from ops.status import judge, reading
from ops.status.model import Hdfs, Placed
from plugins.module_utils.lakehouse.datanode_lists import STALE_SECONDS

# Its nightly run and some hours; a week and a day where an inventory has a calendar of its own.
_CHECKPOINT_HOURS, _OWN_CALENDAR_HOURS = 30, 8 * 24
# What a NameNode reads again at its start, for minutes.
_MANY_EDITS = 10_000_000
_HOUR = 3600


def _case(seen: Seen, faults: Answer[tuple[Fault, ...]]) -> Iterator[Case]:
    namenode = seen.active("namenode")
    yield Case(namenode.host, faults, namenode)


def _counted(word: str, level: Level) -> Callable[[Seen], Iterator[Case]]:
    """Return a check of one of the things that a status looks at in HDFS, by its word there."""

    def cases(seen: Seen) -> Iterator[Case]:
        def wrong(hdfs: Hdfs) -> Iterator[Fault]:
            [(there, fact)] = [
                (there, fact) for name, there, fact in judge.of_hdfs(seen.status, hdfs) if name == word
            ]
            if there:
                yield Fault(fact, judge.dfsadmin(seen.status, "-report"), level=level)

        yield from _case(seen, judged(seen.status.hdfs, wrong))

    return cases


def _safemode(*, by_hand: bool) -> Callable[[Seen], Iterator[Case]]:
    """Return the check of a safe mode that a person has switched on, or of one that HDFS is in by itself."""

    def cases(seen: Seen) -> Iterator[Case]:
        def wrong(hdfs: Hdfs) -> Iterator[Fault]:
            if hdfs.safemode and judge.by_hand(hdfs) is by_hand:
                said = " ".join(hdfs.safemode.split()).removeprefix("Safe mode is ON.").strip()
                fact = f"nothing can be written, safe mode is on: {said.partition('. ')[0]}"
                report = judge.dfsadmin(seen.status, "-report")
                yield Fault(fact, judge.leave_safemode(seen.status) if by_hand else report, "off")

        yield from _case(seen, judged(seen.status.hdfs, wrong))

    return cases


def _image(seen: Seen) -> Iterator[Case]:
    """The NameNode's folders hold an image of the file system: a NameNode does not start without one."""

    def lost(folders: tuple[str, ...]) -> Iterator[Fault]:
        if folders:
            yield Fault(
                f"no image of the file system in {', '.join(folders)}",
                judge.restore(seen.status),
                "one in each",
            )

    namenode = seen.active("namenode")
    yield Case(namenode.host, judged(seen.status.unformatted, lost))


def _datanodes(seen: Seen) -> Iterator[Case]:
    """Every DataNode whose unit runs is live; of one that is stopped its unit is said."""

    def silent(placed: Placed, nodes: Mapping[str, Any]) -> Iterator[Fault]:
        seconds = int(nodes[placed.host]["lastContact"]) if placed.host in nodes else None
        if seconds is None or seconds >= STALE_SECONDS:
            since = "does not count it" if seconds is None else f"has not heard of it for {seconds} s"
            yield Fault(
                f"its DataNode runs, and the NameNode {since}", seen.restart(placed), "a live DataNode"
            )

    for placed in seen.settled("datanode"):
        yield Case(placed.host, judged(_live(seen), partial(silent, placed)), seen.active("namenode"))


def _live(seen: Seen) -> Answer[dict[str, Any]]:
    """The NameNode's live DataNodes by host."""
    nodes = seen.answers["namenode"].then(lambda reply: json.loads(reading.beans(reply)["LiveNodes"]))
    return nodes.then(lambda found: {name.rpartition(":")[0]: node for name, node in found.items()})


def _transfers(seen: Seen) -> dict[str, str]:
    """Where each DataNode gives its blocks, by host."""
    hosts = seen.cluster.running("datanodes")
    return {host.name: "{}:{}".format(*endpoints.on("datanode_data", host).place) for host in hosts}


def _addresses(seen: Seen) -> Iterator[Case]:
    def elsewhere(host: str, place: str, nodes: Mapping[str, Any]) -> Iterator[Fault]:
        if host in nodes and nodes[host]["xferaddr"] != place:
            yield Fault(f"the NameNode sends clients to {nodes[host]['xferaddr']}", seen.site, place)

    for host, place in _transfers(seen).items():
        yield Case(host, judged(_live(seen), partial(elsewhere, host, place)), seen.active("namenode"))


def _reach(seen: Seen) -> Iterator[Case]:
    """A client on any host reaches every DataNode that runs."""
    places = _transfers(seen)
    up = {places[placed.host]: placed.host for placed in seen.settled("datanode")}

    def closed(text: str) -> Iterator[Fault]:
        *closed_places, end = text.split()
        if end != TRIED:
            raise ValueError("not every place was tried")
        for place in sorted(up.keys() & set(closed_places)):
            action = seen.on(up[place], "nft list ruleset")
            yield Fault(f"the DataNode of {up[place]} takes no connection from here", action, place)

    for host in seen.cluster.hosts:
        yield Case(host.name, judged(seen.part(host.name, "reach"), closed))


def _upgrade(seen: Seen) -> Iterator[Case]:
    def open_end(hdfs: Hdfs) -> Iterator[Fault]:
        if fact := judge.unfinished(seen.status, hdfs):
            yield Fault(fact, judge.finalize(seen.status), "finalized, or taken back", Level.WARNING)

    yield from _case(seen, judged(seen.status.hdfs, open_end))


def _checkpoint(seen: Seen) -> Iterator[Case]:
    placed = seen.active("namenode")
    own = seen.variable(placed.host, "hdfs_namenode_checkpoint_calendar") is not None
    hours = _OWN_CALENDAR_HOURS if own else _CHECKPOINT_HOURS

    def old(beans: Mapping[str, Any]) -> Iterator[Fault]:
        action = seen.on(placed.host, "systemctl start hdfs-checkpoint")
        # What it could not do while it was stopped it is not blamed for.
        age = min(seen.status.at - int(beans["LastCheckpointTime"]) / 1000, seen.age(placed))
        if age > hours * _HOUR:
            yield Fault(f"no checkpoint for {age / _HOUR:.0f} h", action, f"one in {hours} h", Level.WARNING)
        if (edits := int(beans["TransactionsSinceLastCheckpoint"])) > _MANY_EDITS:
            fact = f"{edits:,} edits since the last checkpoint make the next start long"
            yield Fault(fact, action, f"at most {_MANY_EDITS:,}", Level.WARNING)

    yield from _case(seen, judged(seen.answers[EDITS].then(reading.beans), old))


def _timer(seen: Seen) -> Iterator[Case]:
    placed = seen.active("namenode")

    def off(blocks: list[dict[str, str]]) -> Iterator[Fault]:
        timer, work = map({one["Id"]: one for one in blocks}.__getitem__, CHECKPOINT)
        action = seen.on(placed.host, "systemctl start hdfs-checkpoint")
        if timer["ActiveState"] != "active":
            yield Fault(
                f"{CHECKPOINT[0]} is {timer['ActiveState']}: the edit log only grows", seen.site, "active"
            )
        if work["Result"] != "success":
            yield Fault(f"the last checkpoint has failed ({work['Result']})", action)

    found = seen.part(placed.host, "checkpoint").then(reading.units)
    yield Case(placed.host, judged(found, off))


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
