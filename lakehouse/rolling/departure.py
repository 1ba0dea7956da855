"""`lakehouse decommission` and `recommission`: a host leaves without data loss, and may return."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from lakehouse.model import endpoints, services
from lakehouse.next_command import command
from lakehouse.remote import hosts
from lakehouse.rolling import capacity, datanodes, lifecycle, offline, restart
from lakehouse.rolling.facts import ASK_SECONDS, Living
from lakehouse.rolling.result import Ending, Refusal, Stopped
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.rolling.steps import Step
from lakehouse.status import questions
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.fsck import parse_fsck

VERB, BACK = "decommission", "recommission"
_PAUSE_SECONDS = 1.0
_SIGNAL_SECONDS = 30.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan, or a refusal where the host cannot leave.

    The plan of a resumed run is the same: HDFS has continued, and stopped units stay stopped.
    """
    if request.arguments.get("offline"):
        return offline.prepare(living, request)
    node, path = str(request.arguments["node"]), request.path
    host_units = lifecycle.units(living, node)[::-1]
    return Work(
        target=node,
        arguments=request.arguments,
        plan=[asdict(step) for step in host_units],
        lines=[
            f"{VERB} {node}: leaves for good",
            *(["  HDFS moves its blocks to the other DataNodes"] if lifecycle.storage(host_units) else []),
            *lifecycle.unit_lines(host_units),
        ],
        question=f"Have {node} leave?",
        do=partial(_leave, host_units, request),
        danger=f"{node} leaves: its units stop and no boot starts them.",
        following=lifecycle.removal_command(node, path),
        refusal=_unreachable(living, node, path) or refusal(living, host_units, node, path),
    )


def _unreachable(living: Living, node: str, path: str) -> Refusal | None:
    """Return that a host does not answer, so that no block can be moved from it; None where it does."""
    answer = living.do(node, "true", ASK_SECONDS)
    if answer.known:
        return None
    ways = f"{hosts.ping(path, node)}; if it will not come back: {offline.give_up_command(node, path)}"
    return Refusal(f"{node} does not answer: {answer.why}", ways)


def refusal(living: Living, host_units: Sequence[Step], node: str, path: str) -> Refusal | None:
    """Return why a host cannot leave, with the remedies; None where it can."""
    reasons = []
    if names := lifecycle.sole_services(living, host_units):
        ways = f"place that on another host in {path}"
        reasons.append(Refusal(f"no other host runs {', '.join(sorted(names))}", ways))
    if questions.backups(living.host(node)):
        site = f".venv/bin/ansible-playbook -i {path} playbooks/site.yml"
        ways = f"lakehouse_backup_host: another one in {path}, {site}, {command('backup', path)}"
        reasons.append(Refusal("it keeps the backups", ways))
    if lifecycle.storage(host_units) and (blocks := _block_refusal(living, node, path)):
        reasons.append(blocks)
    return Refusal("; ".join(reason.fact for reason in reasons), reasons[-1].next) if reasons else None


def _block_refusal(living: Living, node: str, path: str) -> Refusal | None:
    """Return why the blocks of a host cannot be moved; None where they can."""
    bean = living.bean("NameNodeInfo")
    if bean.value is None:
        return Refusal(f"the NameNode does not tell its DataNodes: {bean.why}", command("doctor", path))
    report = living.report().then(parse_fsck)
    if report.value is None:
        return Refusal(f"the NameNode does not tell its files: {report.why}", command("doctor", path))
    nodes, way = datanodes.nodes(bean.value), command("scale-out NODE", path)
    # HDFS marks a stopped DataNode as decommissioned at once, even if only its disks hold a block.
    if node not in nodes and (missing := offline.unreplicated(report.value, node, living.host(node).address)):
        start = command(f"restart {lifecycle.STORAGE} --host {node}", path)
        return Refusal(
            f"its DataNode does not run, and {missing.fact}", f"{start}; if it cannot: {missing.next}"
        )
    unplaced = capacity.unplaced(nodes, report.value, node, living.replication(), way)
    names = {host.address: host.name for host in living.having(lifecycle.STORAGE)}
    return unplaced or capacity.cramped(nodes, report.value, node, names, way)


def _leave(host_units: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    living, node = running.living, str(request.arguments["node"])
    datanode = lifecycle.storage(host_units)
    if datanode and datanodes.state(living, node).value not in datanodes.GOING:
        restart.wait_for_gate(running, datanode, str(datanode), request, back=False)
        if reason := refusal(living, host_units, node, request.path):
            raise Stopped(Ending.REFUSED, reason.fact, reason.next)
    lifecycle.mark_as(running, node, away.LEFT)
    lifecycle.stop_timers(running, node)
    if datanode:
        lifecycle.set_hdfs_state(running, node, hdfs_hosts.DECOMMISSIONED)
    for step in host_units:
        _drain(running, step, float(request.arguments["drain"]))
    lifecycle.stop(running, [step for step in host_units if step is not datanode], for_good=True)
    facts = [f"{counted(len(host_units), 'unit stopped', 'units stopped')}"]
    if datanode:
        facts.append(f"{counted(_moved(running, node), 'block moved', 'blocks moved')}")
        lifecycle.stop(running, [datanode], for_good=True)
    return tuple(facts)


def _drain(running: Running, step: Step, seconds: float) -> None:
    """Drain a service; after `seconds` its remaining work starts again elsewhere."""
    drain = services.load().services[step.service].drain
    if drain is None:
        return
    living, host = running.living, running.living.host(step.host)
    running.begins(step.host, f"{step.service} takes no more work")
    signal = f"systemctl kill --kill-whom=main --signal={drain.signal} {shlex.quote(step.unit)}.service"
    if not living.do(step.host, signal, _SIGNAL_SECONDS).known:  # it does not run
        return
    url = f"{endpoints.on(drain.port, host).uri}{drain.path}"
    is_active = f"systemctl is-active --quiet {shlex.quote(step.unit)}.service"
    until, reported = time.monotonic() + seconds, ""
    while time.monotonic() < until:
        remaining = living.page(url).then(lambda text: len(json.loads(text)[drain.value]))
        # A process that is too busy to answer has work; one that has ended has none.
        if remaining.value == 0 or not (
            remaining.known or living.do(step.host, is_active, _SIGNAL_SECONDS).known
        ):
            return
        progress = f"{remaining.value} {drain.value} have work" if remaining.known else remaining.why
        if progress != reported:
            running.say(f"{step}: {progress}")
            reported = progress
        time.sleep(_PAUSE_SECONDS)
    running.say(f"{step}: {reported} after {seconds:g} s; it begins again elsewhere")


def _moved(running: Running, node: str) -> int:
    """Wait until every block has enough replicas elsewhere; return the most that had too few."""
    living, most = running.living, 0
    deadline = time.monotonic() + offline.COUNTED_SECONDS

    def remaining() -> str:
        nonlocal most
        bean = living.bean("NameNodeInfo")
        if bean.then(lambda info: datanodes.states(info)[node]).value == datanodes.LEFT:
            # A stopped DataNode has left at once: its blocks are copied from the others.
            is_live = bean.then(lambda info: node in datanodes.nodes(info)).value
            return "" if is_live else offline.copies_pending(living, deadline)
        progress = bean.then(lambda info: datanodes.pending(info, node))
        if progress.value:
            most = max(most, progress.value.blocks)
        return str(progress.value or progress.why)

    running.follow(f"{lifecycle.STORAGE} on {node}", remaining)
    return most


def prepare_back(living: Living, request: Request) -> Work:
    """Return the plan: the units of the host in start order."""
    line = f"{BACK} {request.arguments['node']}: serves again"
    return lifecycle.prepare_return(living, request.arguments, line, for_good=True)
