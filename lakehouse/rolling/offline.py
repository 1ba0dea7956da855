"""`lakehouse decommission --offline`: remove a host that will not answer again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lakehouse.maybe import Answer, both
from lakehouse.model import placement, services
from lakehouse.model.inventory import Host
from lakehouse.next_command import command
from lakehouse.remote import hosts
from lakehouse.rolling import capacity, datanodes, lifecycle, marker, run
from lakehouse.rolling.facts import ASK_SECONDS, Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.rolling.steps import Step
from lakehouse.status import questions
from plugins.module_utils.lakehouse import away, hdfs_gate, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.datanode_lists import LIVE, members
from plugins.module_utils.lakehouse.fsck import Block, File, parse_fsck

_COUNTERS, _NODES = "FSNamesystemState", "NameNodeInfo"
_NOTE = "the note that it has left"
_STATE_SECONDS = 60.0
# HDFS counts its blocks every few seconds (dfs.namenode.redundancy.interval.seconds).
COUNTED_SECONDS = 10.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan, or a refusal where the host cannot be removed. That of a resumed run is the same."""
    node, path, forced = str(request.arguments["node"]), request.path, bool(request.arguments["force"])
    host_units = lifecycle.units(living, node)
    final_step = (
        "HDFS makes as many replicas as it can" if forced else "waits until every block has its replicas"
    )
    steps = [
        "the NameNode's host notes that it has left",
        *(["HDFS excludes its DataNode", final_step] if lifecycle.storage(host_units) else []),
    ]
    return Work(
        target=node,
        arguments=request.arguments,
        plan=[{"step": step} for step in steps],
        lines=[
            f"decommission {node} --offline: leaves without being asked",
            *(f"  {number:>2} {step}" for number, step in enumerate(steps, 1)),
            f"  expected no longer: {', '.join(step.service for step in host_units)}",
        ],
        question=f"Give {node} up?",
        do=partial(_give_up, host_units, request),
        danger=danger(living.host(node)),
        following=lifecycle.removal_command(node, path),
        words=run.typed(node, {"--offline": True, "--force": forced}),
        refusal=refusal(living, host_units, node, path, forced=forced),
    )


def danger(host: Host) -> str:
    """Return the loss when a host is removed offline."""
    loss = f"{host.name} is given up: what only its disks hold comes back with it alone"
    return f"{loss}, and the backups are there." if questions.backups(host) else f"{loss}."


def give_up_command(node: str, path: str, *words: str) -> str:
    """Return the command that removes a host offline."""
    return command(" ".join(["decommission", node, "--offline", *words]), path)


def refusal(
    living: Living, host_units: Sequence[Step], node: str, path: str, *, forced: bool
) -> Refusal | None:
    """Return why a host cannot be removed offline, with the remedy; None where it can."""
    if reason := irreplaceable(lifecycle.sole_services(living, host_units), path) or _reachable(
        living, host_units, node, path
    ):
        return reason
    return _blocks(living, node, path, forced=forced) if lifecycle.storage(host_units) else None


def irreplaceable(sole_services: Iterable[str], path: str) -> Refusal | None:
    """Return that no other host runs some services; None where there are no such services."""
    if not (names := sorted(sole_services)):
        return None
    fact, catalogue = f"no other host runs {', '.join(names)}", services.load().services
    if not any(placement.needed(catalogue[name]) for name in names):
        return Refusal(fact, f"place that on another host in {path}")
    way = f"docs/operations/restore.md: {command('restore', path)}"
    return Refusal(f"{fact}: what it stores is in a backup", way)


def _reachable(living: Living, host_units: Sequence[Step], node: str, path: str) -> Refusal | None:
    """Return that a host answers, or that HDFS counts it as live; None where neither is so."""
    if living.do(node, "true", ASK_SECONDS).known:
        return Refusal(f"{node} answers", command(f"decommission {node}", path))
    if lifecycle.storage(host_units):
        return heard(living.bean(_NODES).then(lambda bean: members(bean, LIVE)), node, path)
    return serving({step.service: living.members(step) for step in host_units}, node, path)


def heard(live: Answer[dict[str, dict[str, Any]]], node: str, path: str) -> Refusal | None:
    """Return that HDFS counts a DataNode as live, or does not answer; None where it is dead."""
    if live.value is None:
        return Refusal(f"the NameNode does not tell its DataNodes: {live.why}", command("doctor", path))
    if node not in live.value:
        return None
    fact = f"HDFS counts its DataNode as live: heard of {live.value[node]['lastContact']} s ago"
    return Refusal(fact, f"{hosts.ping(path, node)}, or the same again when HDFS has given it up")


def serving(members: Mapping[str, Answer[frozenset[str]]], node: str, path: str) -> Refusal | None:
    """Return that leaders list a service of the host, or do not answer; None where none lists one."""
    if unknown := next(((name, answer.why) for name, answer in members.items() if not answer.known), None):
        fact = f"it is unknown whether {unknown[0]} there takes work: {unknown[1]}"
        return Refusal(fact, command("doctor", path))
    working = [name for name, answer in members.items() if answer.value]
    return Refusal(f"{', '.join(working)} there take work", hosts.ping(path, node)) if working else None


def _blocks(living: Living, node: str, path: str, *, forced: bool) -> Refusal | None:
    address, replication = living.host(node).address, living.replication()
    way = give_up_command(node, path, "--force")

    def judge(nodes: Mapping[str, datanodes.Node], files: Sequence[File]) -> Refusal | None:
        missing = unreplicated(files, node, address)
        return missing if missing or forced else capacity.unplaced(nodes, files, node, replication, way)

    nodes = living.bean(_NODES).then(datanodes.nodes)
    verdict = both(nodes, living.report().then(parse_fsck), judge)
    if verdict.known:
        return verdict.value
    return Refusal(f"the NameNode does not tell how its blocks are: {verdict.why}", command("doctor", path))


def unreplicated(files: Iterable[File], node: str, address: str) -> Refusal | None:
    """Return that blocks have no replica on another host, even with --force; None where all have."""
    paths = [file.path for file in files for block in file.blocks if _hosts(block) <= {address}]
    if not paths:
        return None
    fact = (
        f"{counted(len(paths), 'block has', 'blocks have')} no replica elsewhere, such as one of {paths[0]}:"
    )
    fact += f" {node} may have the last"
    return Refusal(
        fact, "bring it back, or restore or remove such files: hdfs fsck / -list-corruptfileblocks"
    )


def _hosts(block: Block) -> set[str]:
    return {place.rpartition(":")[0] for place in block.datanodes}


def _give_up(host_units: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    living, node = running.living, str(request.arguments["node"])
    # The host may have answered since the plan was shown.
    if reason := _reachable(living, host_units, node, request.path):
        raise Stopped(Ending.REFUSED, reason.fact, reason.next)
    running.begins(node, _NOTE)
    answer = marker.note(living, node, away.written(away.LEFT, running.journal.id, time.time()))
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode's host does not note it: {answer.why}", "")
    running.done(node, _NOTE)
    facts = [
        f"{counted(len(host_units), 'service is expected no longer', 'services are expected no longer')}"
    ]
    if lifecycle.storage(host_units):
        _exclude(running, node)
        if not request.arguments["force"]:
            running.follow("HDFS", partial(copies_pending, living, time.monotonic() + COUNTED_SECONDS))
        facts.append(_under_replicated(living) or "every block has its replicas")
    return tuple(facts)


def _exclude(running: Running, node: str) -> None:
    """Decommission a dead DataNode in HDFS."""
    living = running.living
    if datanodes.state(living, node).value == datanodes.AWAY:
        # HDFS does not replace the replicas of a DataNode in maintenance.
        lifecycle.set_hdfs_state(running, node, hdfs_hosts.NORMAL)
    lifecycle.set_hdfs_state(running, node, hdfs_hosts.DECOMMISSIONED)
    pending = partial(lifecycle.not_in_state, living, node, datanodes.LEFT)
    running.wait(f"{lifecycle.STORAGE} on {node}", pending, _STATE_SECONDS)


def copies_pending(living: Living, counted_at: float) -> str:
    """Return how many blocks HDFS has still to copy; empty where there is none after `counted_at`."""
    return _under_replicated(living) or ("it counts its blocks" if time.monotonic() < counted_at else "")


def _under_replicated(living: Living) -> str:
    """Return how many blocks lack a replica; empty where none does."""
    lacking = living.bean(_COUNTERS).then(hdfs_gate.lacking)
    return lacking.why or (
        f"{counted(lacking.value, 'block lacks a replica', 'blocks lack a replica')}" if lacking.value else ""
    )
