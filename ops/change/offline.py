"""`lakehouse decommission --offline`: a host that will not answer again leaves without being asked."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lakehouse import services
from lakehouse.inventory import Host
from lakehouse.next_command import command
from ops import hosts
from ops.change import capacity, datanodes, lifecycle, marker, run
from ops.change.facts import ASK_SECONDS, Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Request, Running, Work
from ops.change.steps import Step
from ops.maybe import Answer, both
from ops.status import placement, questions
from plugins.module_utils.lakehouse import away, hdfs_gate, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.datanode_lists import LIVE, members
from plugins.module_utils.lakehouse.fsck import Block, File, parse_fsck

_COUNTERS, _NODES = "FSNamesystemState", "NameNodeInfo"
_NOTE = "the note that it has left"
_STATE_SECONDS = 60.0
# What HDFS counts is as old as its last look at its blocks (dfs.namenode.redundancy.interval.seconds).
COUNTED_SECONDS = 10.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan, or why the host cannot be given up. Of a run that was stopped it is the same."""
    node, path, forced = str(request.arguments["node"]), request.path, bool(request.arguments["force"])
    here = lifecycle.units(living, node)
    last = "HDFS makes as many replicas as it can" if forced else "waits until every block has its replicas"
    steps = [
        "the NameNode's host notes that it has left",
        *(["HDFS excludes its DataNode", last] if lifecycle.storage(here) else []),
    ]
    return Work(
        target=node,
        arguments=request.arguments,
        plan=[{"step": step} for step in steps],
        lines=[
            f"decommission {node} --offline: leaves without being asked",
            *(f"  {number:>2} {step}" for number, step in enumerate(steps, 1)),
            f"  expected no longer: {', '.join(step.service for step in here)}",
        ],
        question=f"Give {node} up?",
        do=partial(_give_up, here, request),
        danger=danger(living.host(node)),
        following=lifecycle.taken_out(node, path),
        words=run.typed(node, {"--offline": True, "--force": forced}),
        refusal=refusal(living, here, node, path, forced=forced),
    )


def danger(host: Host) -> str:
    """Return what is lost with a host that is given up."""
    known = f"{host.name} is given up: what only its disks hold comes back with it alone"
    return f"{known}, and the backups are there." if questions.backups(host) else f"{known}."


def given_up(node: str, path: str, *words: str) -> str:
    """Return the command that gives a host up."""
    return command(" ".join(["decommission", node, "--offline", *words]), path)


def refusal(living: Living, here: Sequence[Step], node: str, path: str, *, forced: bool) -> Refusal | None:
    """Return why a host cannot be given up, with the way out; None where it can."""
    if found := irreplaceable(lifecycle.alone(living, here), path) or _there(living, here, node, path):
        return found
    return _blocks(living, node, path, forced=forced) if lifecycle.storage(here) else None


def irreplaceable(alone: Iterable[str], path: str) -> Refusal | None:
    """Return that no other host runs what a host does; None where all of it runs elsewhere too."""
    if not (names := sorted(alone)):
        return None
    fact, catalogue = f"no other host runs {', '.join(names)}", services.load().services
    if not any(placement.needed(catalogue[name]) for name in names):
        return Refusal(fact, f"place that on another host in {path}")
    way = f"docs/operations/restore.md: {command('restore', path)}"
    return Refusal(f"{fact}: what it stores is in a backup", way)


def _there(living: Living, here: Sequence[Step], node: str, path: str) -> Refusal | None:
    """Return that a host answers, or that HDFS hears of it; None where it is silent to both."""
    if living.do(node, "true", ASK_SECONDS).known:
        return Refusal(f"{node} answers", command(f"decommission {node}", path))
    if lifecycle.storage(here):
        return heard(living.bean(_NODES).then(lambda bean: members(bean, LIVE)), node, path)
    return serving({step.service: living.members(step) for step in here}, node, path)


def heard(live: Answer[dict[str, dict[str, Any]]], node: str, path: str) -> Refusal | None:
    """Return that HDFS counts a DataNode as live, or does not answer; None where it is dead."""
    if live.value is None:
        return Refusal(f"the NameNode does not tell its DataNodes: {live.why}", command("doctor", path))
    if node not in live.value:
        return None
    fact = f"HDFS counts its DataNode as live: heard of {live.value[node]['lastContact']} s ago"
    return Refusal(fact, f"{hosts.ping(path, node)}, or the same again when HDFS has given it up")


def serving(members: Mapping[str, Answer[frozenset[str]]], node: str, path: str) -> Refusal | None:
    """Return that leaders count what a host without a DataNode runs, or do not tell; None where none does."""
    if silent := next(((name, one.why) for name, one in members.items() if not one.known), None):
        fact = f"it is unknown whether {silent[0]} there takes work: {silent[1]}"
        return Refusal(fact, command("doctor", path))
    led = [name for name, one in members.items() if one.value]
    return Refusal(f"{', '.join(led)} there take work", hosts.ping(path, node)) if led else None


def _blocks(living: Living, node: str, path: str, *, forced: bool) -> Refusal | None:
    address, replication = living.host(node).address, living.replication()
    way = given_up(node, path, "--force")

    def judged(nodes: Mapping[str, datanodes.Node], files: Sequence[File]) -> Refusal | None:
        found = lost(files, node, address)
        return found if found or forced else capacity.unplaced(nodes, files, node, replication, way)

    nodes = living.bean(_NODES).then(datanodes.nodes)
    found = both(nodes, living.report().then(parse_fsck), judged)
    if found.known:
        return found.value
    return Refusal(f"the NameNode does not tell how its blocks are: {found.why}", command("doctor", path))


def lost(files: Iterable[File], node: str, address: str) -> Refusal | None:
    """Return that blocks have no replica on another host, which nothing overrules; None where all have."""
    gone = [file.path for file in files for block in file.blocks if _hosts(block) <= {address}]
    if not gone:
        return None
    fact = f"{counted(len(gone), 'block has', 'blocks have')} no replica elsewhere, such as one of {gone[0]}:"
    fact += f" {node} may have the last"
    return Refusal(
        fact, "bring it back, or restore or remove such files: hdfs fsck / -list-corruptfileblocks"
    )


def _hosts(block: Block) -> set[str]:
    return {place.rpartition(":")[0] for place in block.datanodes}


def _give_up(here: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    living, node = running.living, str(request.arguments["node"])
    # A person may have taken his time.
    if found := _there(living, here, node, request.path):
        raise Stopped(Ending.REFUSED, found.fact, found.next)
    running.begins(node, _NOTE)
    noted = marker.note(living, node, away.written(away.LEFT, running.journal.id, time.time()))
    if not noted.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode's host does not note it: {noted.why}", "")
    running.done(node, _NOTE)
    facts = [f"{counted(len(here), 'service is expected no longer', 'services are expected no longer')}"]
    if lifecycle.storage(here):
        _exclude(running, node)
        if not request.arguments["force"]:
            running.follow("HDFS", partial(left, living, time.monotonic() + COUNTED_SECONDS))
        facts.append(_short(living) or "every block has its replicas")
    return tuple(facts)


def _exclude(running: Running, node: str) -> None:
    """Have HDFS count no longer on a DataNode that is dead."""
    living = running.living
    if datanodes.state(living, node).value == datanodes.AWAY:
        # What is away for a while lacks nowhere, until that has ended.
        lifecycle.in_hdfs(running, node, hdfs_hosts.NORMAL)
    lifecycle.in_hdfs(running, node, hdfs_hosts.DECOMMISSIONED)
    excluded = partial(lifecycle.in_state, living, node, datanodes.LEFT)
    running.wait(f"{lifecycle.STORAGE} on {node}", excluded, _STATE_SECONDS)


def left(living: Living, until: float) -> str:
    """Return how many blocks HDFS has still to copy, in words; empty where there is none after `until`."""
    return _short(living) or ("it counts its blocks" if time.monotonic() < until else "")


def _short(living: Living) -> str:
    """Return how many blocks lack a replica, in words; empty where none does."""
    left = living.bean(_COUNTERS).then(hdfs_gate.lacking)
    return left.why or (
        f"{counted(left.value, 'block lacks a replica', 'blocks lack a replica')}" if left.value else ""
    )
