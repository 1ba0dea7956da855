"""`lakehouse scale-out`: a host of the inventory joins the cluster, and receives its share of the blocks."""

from __future__ import annotations

import json
from functools import partial

from lakehouse import run as programs
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import command
from lakehouse.remote import hosts
from lakehouse.rolling import balance, datanodes, lifecycle, marker, run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse import hdfs_hosts

VERB = "scale-out"
# After a playbook that has waited for the same.
_SERVES_SECONDS = 120.0
_REFRESH_SECONDS = 60.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan; UsageError where the inventory lacks the host or places nothing on it.

    The plan of a resumed run is the same: playbook and balancer are idempotent.
    """
    arguments, path = request.arguments, request.path
    node = str(arguments["node"])
    if node not in {host.name for host in living.cluster.hosts}:
        raise UsageError(
            f"{node} is not in {path}", f"add it to {path}/hosts.yml and to the groups of what it shall run"
        )
    host_units = lifecycle.units(living, node)
    if not host_units:
        raise UsageError(f"{path} has {node} run nothing", f"add it to groups in {path}/hosts.yml")
    balances = bool(arguments["balance"] and lifecycle.storage(host_units))
    moves = f"HDFS moves blocks to it, at most {arguments['bandwidth']} MiB/s per DataNode"
    return Work(
        target=node,
        arguments=arguments,
        plan=[{"step": "site.yml"}, *([{"step": "balance"}] if balances else [])],
        lines=[
            f"{VERB} {node}: joins with {', '.join(step.service for step in host_units)}",
            "   1 playbooks/site.yml on all hosts; nothing that serves is restarted",
            *([f"   2 {moves}"] if balances else []),
        ],
        question=f"Have {node} join?",
        do=partial(_join, host_units, request),
        following=command("doctor", path),
        words=run.typed(
            node,
            {"--no-balance": not arguments["balance"], "--bandwidth": balances and arguments["bandwidth"]},
        ),
    )


def _join(host_units: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    node, has_datanode = host_units[0].host, lifecycle.storage(host_units) is not None
    _admit(running, node, request.path, has_datanode=has_datanode)
    _converge(running, node, request.path)
    for step in host_units:
        lifecycle.wait_for_answer(running, step, _SERVES_SECONDS)
        lifecycle.wait_until_settled(running, step, _SERVES_SECONDS)
        running.done(node, step.service)
    facts = [f"{', '.join(step.service for step in host_units)} serve"]
    if has_datanode:
        lifecycle.wait_for_datanode(running, node, _SERVES_SECONDS)
        if request.arguments["balance"]:
            facts.append(balance.spread(running, int(request.arguments["bandwidth"])))
    return tuple(facts)


def _admit(running: Running, node: str, path: str, *, has_datanode: bool) -> None:
    """Undo what a departure wrote: the host is a member of the cluster again."""
    if has_datanode and any(
        entry["hostName"] == node and entry.get("adminState", hdfs_hosts.NORMAL) != hdfs_hosts.NORMAL
        for entry in datanodes.entries(running.living)
    ):
        lifecycle.set_hdfs_state(running, node, hdfs_hosts.NORMAL)
    answer = marker.take(running.living, node)
    if not answer.known:
        raise Stopped(Ending.FAILED, f"{node} does not answer: {answer.why}", hosts.ping(path, node))


def _converge(running: Running, node: str, path: str) -> None:
    running.begins(node, "site.yml")
    log = programs.LOGS / f"{VERB}.log"
    running.say(f"playbooks/site.yml; its output: less {log.relative_to(programs.ROOT)}")
    # Sizes depend on the number of hosts: running services get new ones with the next restart by an operator.
    variables = {"lakehouse_run": running.journal.id, "lakehouse_restarts": False}
    try:
        programs.playbook("site", path, "--extra-vars", json.dumps(variables), log=VERB)
    except LakehouseError as error:
        next_command = f"less {log}, then {command(f'resume {running.journal.id}', path)}"
        raise Stopped(Ending.HALFWAY, "playbooks/site.yml failed", next_command) from error
    _refresh(running.living)
    running.done(node, "site.yml")


def _refresh(living: Living) -> None:
    """Make the NameNode read the hosts from which Trino may impersonate users."""
    host = living.cluster.active("namenode")
    refresh = living.as_hdfs("hdfs dfsadmin -refreshSuperUserGroupsConfiguration")
    answer = living.do(host.name, refresh, _REFRESH_SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"the NameNode does not read who may ask for others: {answer.why}", "")
