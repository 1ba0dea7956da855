"""`lakehouse decommission` and `recommission`: a host leaves with nothing lost, and may come back."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from lakehouse import endpoints, services
from lakehouse.next_command import command
from ops import hosts
from ops.change import capacity, datanodes, lifecycle, offline, restart
from ops.change.facts import ASK_SECONDS, Living
from ops.change.result import Ending, Refusal, Stopped
from ops.change.run import Request, Running, Work
from ops.change.steps import Step
from ops.status import questions
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.fsck import parse_fsck

VERB, BACK = "decommission", "recommission"
_PAUSE_SECONDS = 1.0
_SIGNAL_SECONDS = 30.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan, or why the host cannot leave: that is known before anything is asked of a person.

    Of a run that was stopped it is the same: HDFS has gone on meanwhile, and what has stopped stays so.
    """
    if request.arguments.get("offline"):
        return offline.prepare(living, request)
    node, path = str(request.arguments["node"]), request.path
    here = lifecycle.units(living, node)[::-1]
    return Work(
        target=node,
        arguments=request.arguments,
        plan=[asdict(step) for step in here],
        lines=[
            f"{VERB} {node}: leaves for good",
            *(["  HDFS moves its blocks to the other DataNodes"] if lifecycle.storage(here) else []),
            *lifecycle.listed(here),
        ],
        question=f"Have {node} leave?",
        do=partial(_leave, here, request),
        danger=f"{node} leaves: its units stop and no boot starts them.",
        following=lifecycle.taken_out(node, path),
        refusal=_silent(living, node, path) or refusal(living, here, node, path),
    )


def _silent(living: Living, node: str, path: str) -> Refusal | None:
    """Return that a host does not answer, so that nothing can be moved from it; None where it does."""
    answer = living.do(node, "true", ASK_SECONDS)
    if answer.known:
        return None
    ways = f"{hosts.ping(path, node)}; if it will not come back: {offline.given_up(node, path)}"
    return Refusal(f"{node} does not answer: {answer.why}", ways)


def refusal(living: Living, here: Sequence[Step], node: str, path: str) -> Refusal | None:
    """Return why a host cannot leave, with the ways out; None where it can."""
    found = []
    if alone := lifecycle.alone(living, here):
        ways = f"place that on another host in {path}"
        found.append(Refusal(f"no other host runs {', '.join(sorted(alone))}", ways))
    if questions.backups(living.host(node)):
        site = f".venv/bin/ansible-playbook -i {path} playbooks/site.yml"
        ways = f"lakehouse_backup_host: another one in {path}, {site}, {command('backup', path)}"
        found.append(Refusal("it keeps the backups", ways))
    if lifecycle.storage(here) and (blocks := _kept(living, node, path)):
        found.append(blocks)
    return Refusal("; ".join(one.fact for one in found), found[-1].next) if found else None


def _kept(living: Living, node: str, path: str) -> Refusal | None:
    """Return why the blocks of a host cannot leave it; None where they can."""
    bean = living.bean("NameNodeInfo")
    if bean.value is None:
        return Refusal(f"the NameNode does not tell its DataNodes: {bean.why}", command("doctor", path))
    report = living.report().then(parse_fsck)
    if report.value is None:
        return Refusal(f"the NameNode does not tell its files: {report.why}", command("doctor", path))
    nodes, way = datanodes.nodes(bean.value), command("scale-out NODE", path)
    # HDFS calls a DataNode that does not run decommissioned at once, whatever its disks alone hold.
    if node not in nodes and (gone := offline.lost(report.value, node, living.host(node).address)):
        start = command(f"restart {lifecycle.STORAGE} --host {node}", path)
        return Refusal(f"its DataNode does not run, and {gone.fact}", f"{start}; if it cannot: {gone.next}")
    found = capacity.unplaced(nodes, report.value, node, living.replication(), way)
    names = {host.address: host.name for host in living.having(lifecycle.STORAGE)}
    return found or capacity.cramped(nodes, report.value, node, names, way)


def _leave(here: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    living, node = running.living, str(request.arguments["node"])
    stored = lifecycle.storage(here)
    moving = stored and datanodes.state(living, node).value not in datanodes.GOING
    if stored and moving:
        restart.wait_for_gate(running, stored, str(stored), request, back=False)
        if found := refusal(living, here, node, request.path):
            raise Stopped(Ending.REFUSED, found.fact, found.next)
    lifecycle.mark_as(running, node, away.LEFT)
    lifecycle.unscheduled(running, node)
    if stored:
        lifecycle.in_hdfs(running, node, hdfs_hosts.DECOMMISSIONED)
    for step in here:
        _drain(running, step, float(request.arguments["drain"]))
    lifecycle.stop(running, [step for step in here if step is not stored], for_good=True)
    facts = [f"{counted(len(here), 'unit stopped', 'units stopped')}"]
    if stored:
        facts.append(f"{counted(_moved(running, node), 'block moved', 'blocks moved')}")
        lifecycle.stop(running, [stored], for_good=True)
    return tuple(facts)


def _drain(running: Running, step: Step, seconds: float) -> None:
    """Have a service end its work and take no more; after `seconds` the rest begins again elsewhere."""
    drain = services.load().services[step.service].drain
    if drain is None:
        return
    living, host = running.living, running.living.host(step.host)
    running.begins(step.host, f"{step.service} takes no more work")
    told = f"systemctl kill --kill-whom=main --signal={drain.signal} {shlex.quote(step.unit)}.service"
    if not living.do(step.host, told, _SIGNAL_SECONDS).known:  # it does not run
        return
    url = f"{endpoints.on(drain.port, host).uri}{drain.path}"
    runs = f"systemctl is-active --quiet {shlex.quote(step.unit)}.service"
    until, said = time.monotonic() + seconds, ""
    while time.monotonic() < until:
        left = living.page(url).then(lambda text: len(json.loads(text)[drain.value]))
        # One that is too busy to tell has work; one that has ended has none.
        if left.value == 0 or not (left.known or living.do(step.host, runs, _SIGNAL_SECONDS).known):
            return
        now = f"{left.value} {drain.value} have work" if left.known else left.why
        if now != said:
            running.say(f"{step}: {now}")
            said = now
        time.sleep(_PAUSE_SECONDS)
    running.say(f"{step}: {said} after {seconds:g} s; it begins again elsewhere")


def _moved(running: Running, node: str) -> int:
    """Return once every block has enough replicas elsewhere, and how many had too few at the most."""
    living, most = running.living, 0
    counted = time.monotonic() + offline.COUNTED_SECONDS

    def left() -> str:
        nonlocal most
        bean = living.bean("NameNodeInfo")
        if bean.then(lambda info: datanodes.known(info)[node]).value == datanodes.LEFT:
            # One that did not run has left at once: its blocks are copied from the others since then.
            runs = bean.then(lambda info: node in datanodes.nodes(info)).value
            return "" if runs else offline.left(living, counted)
        progress = bean.then(lambda info: datanodes.moving(info, node))
        if progress.value:
            most = max(most, progress.value.blocks)
        return str(progress.value or progress.why)

    running.follow(f"{lifecycle.STORAGE} on {node}", left)
    return most


def prepare_back(living: Living, request: Request) -> Work:
    """Return the plan: the units of the host in the order in which they start."""
    line = f"{BACK} {request.arguments['node']}: serves again"
    return lifecycle.back(living, request.arguments, line, for_good=True)
