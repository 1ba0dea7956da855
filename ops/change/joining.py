"""`lakehouse scale-out`: a host of the inventory joins the cluster, and takes its share of the blocks."""

from __future__ import annotations

import json
from functools import partial

from lakehouse import run as programs
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import command
from ops import hosts
from ops.change import balance, datanodes, lifecycle, marker, run
from ops.change.facts import Living
from ops.change.result import Ending, Stopped
from ops.change.run import Request, Running, Work
from ops.change.steps import Step
from plugins.module_utils.lakehouse import hdfs_hosts

VERB = "scale-out"
# After a playbook that has waited for the same.
_SERVES_SECONDS = 120.0
_REFRESH_SECONDS = 60.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; UsageError where the inventory lacks the host or places nothing on it.

    Of a run that was stopped it is the same: the playbook finds what is there, the balancer what lies well.
    """
    arguments, path = request.arguments, request.path
    node = str(arguments["node"])
    if node not in {host.name for host in living.cluster.hosts}:
        raise UsageError(
            f"{node} is not in {path}", f"add it to {path}/hosts.yml and to the groups of what it shall run"
        )
    here = lifecycle.units(living, node)
    if not here:
        raise UsageError(f"{path} has {node} run nothing", f"add it to groups in {path}/hosts.yml")
    shares = bool(arguments["balance"] and lifecycle.storage(here))
    moves = f"HDFS moves blocks to it, at most {arguments['bandwidth']} MiB/s per DataNode"
    return Work(
        target=node,
        arguments=arguments,
        plan=[{"step": "site.yml"}, *([{"step": "balance"}] if shares else [])],
        lines=[
            f"{VERB} {node}: joins with {', '.join(step.service for step in here)}",
            "   1 playbooks/site.yml on all hosts; nothing that serves is restarted",
            *([f"   2 {moves}"] if shares else []),
        ],
        question=f"Have {node} join?",
        do=partial(_join, here, request),
        following=command("doctor", path),
        words=run.typed(
            node, {"--no-balance": not arguments["balance"], "--bandwidth": shares and arguments["bandwidth"]}
        ),
    )


def _join(here: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    node, stored = here[0].host, lifecycle.storage(here) is not None
    _admit(running, node, request.path, stored=stored)
    _converge(running, node, request.path)
    for step in here:
        lifecycle.answers(running, step, _SERVES_SECONDS)
        lifecycle.settles(running, step, _SERVES_SECONDS)
        running.done(node, step.service)
    facts = [f"{', '.join(step.service for step in here)} serve"]
    if stored:
        lifecycle.stores(running, node, _SERVES_SECONDS)
        if request.arguments["balance"]:
            facts.append(balance.spread(running, int(request.arguments["bandwidth"])))
    return tuple(facts)


def _admit(running: Running, node: str, path: str, *, stored: bool) -> None:
    """Take back what a departure has written: one who is named again is of the cluster again."""
    if stored and any(
        one["hostName"] == node and one.get("adminState", hdfs_hosts.NORMAL) != hdfs_hosts.NORMAL
        for one in datanodes.entries(running.living)
    ):
        lifecycle.in_hdfs(running, node, hdfs_hosts.NORMAL)
    unmarked = marker.take(running.living, node)
    if not unmarked.known:
        raise Stopped(Ending.FAILED, f"{node} does not answer: {unmarked.why}", hosts.ping(path, node))


def _converge(running: Running, node: str, path: str) -> None:
    running.begins(node, "site.yml")
    log = programs.LOGS / f"{VERB}.log"
    running.say(f"playbooks/site.yml; its output: less {log.relative_to(programs.ROOT)}")
    # Sizes follow from the number of hosts: what serves takes its new ones when an operator wants a restart.
    told = {"lakehouse_run": running.journal.id, "lakehouse_restarts": False}
    try:
        programs.playbook("site", path, "--extra-vars", json.dumps(told), log=VERB)
    except LakehouseError as error:
        following = f"less {log}, then {command(f'resume {running.journal.id}', path)}"
        raise Stopped(Ending.HALFWAY, "playbooks/site.yml failed", following) from error
    _refresh(running.living)
    running.done(node, "site.yml")


def _refresh(living: Living) -> None:
    """Have the NameNode read from which hosts Trino asks in the name of people."""
    host = living.cluster.active("namenode")
    read = living.as_hdfs("hdfs dfsadmin -refreshSuperUserGroupsConfiguration")
    done = living.do(host.name, read, _REFRESH_SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode does not read who may ask for others: {done.why}", "")
