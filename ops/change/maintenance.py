"""`lakehouse maintenance`: a host may go for a while, to reboot or to be repaired, and comes back."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from lakehouse.next_command import command
from ops.change import datanodes, lifecycle, restart, run
from ops.change.facts import Living
from ops.change.result import Refusal
from ops.change.run import Request, Running, Work
from ops.change.steps import Step
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted

VERB = "maintenance"
_STATE_SECONDS = 300.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: the units of the host in the order in which they stop, or start again."""
    node = str(request.arguments["node"])
    if request.arguments["end"]:
        back = lifecycle.back(living, request.arguments, f"{VERB} {node}: starts again")
        return replace(back, words=run.typed(node, {"--end": True}))
    until = _clock(request.arguments["until"])
    here = lifecycle.units(living, node)[::-1]
    alone = lifecycle.alone(living, here)
    gap = f"  HDFS does without its replicas and makes no others until {until}"
    return Work(
        target=node,
        arguments=request.arguments,
        plan=[asdict(step) for step in here],
        lines=[
            f"{VERB} {node}: stops until {until}",
            *([gap] if lifecycle.storage(here) else []),
            *lifecycle.listed(here),
        ],
        question=f"Stop {counted(len(here), 'unit')} on {node}?",
        do=partial(_leave, here, request),
        danger=f"No other host runs {', '.join(alone)}: the cluster is without." if alone else "",
        words=run.typed(node, {"--for": request.arguments.get("for")}),
        refusal=_over(node, float(request.arguments["until"]), request.path),
    )


def _over(node: str, until: float, path: str) -> Refusal | None:
    """Return that a run is resumed after its time: HDFS would take no such maintenance; None before."""
    if until > time.time():
        return None
    return Refusal(f"its time was over at {_clock(until)}", command(f"maintenance {node} --end", path))


def _clock(until: float) -> str:
    return datetime.fromtimestamp(until, UTC).strftime("%H:%M UTC")


def _leave(here: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    living, node, until = running.living, str(request.arguments["node"]), float(request.arguments["until"])
    facts = [f"{counted(len(here), 'unit stopped', 'units stopped')}"]
    stored = lifecycle.storage(here)
    if stored:
        restart.wait_for_gate(running, stored, str(stored), request, back=False)
    lifecycle.mark_as(running, node, away.MAINTENANCE, until)
    if stored:
        lifecycle.in_hdfs(running, node, hdfs_hosts.IN_MAINTENANCE, until)
        running.wait(str(stored), partial(lifecycle.in_state, living, node, datanodes.AWAY), _STATE_SECONDS)
        facts.append(f"HDFS does without it until {_clock(until)}")
    lifecycle.stop(running, here)
    return tuple(facts)
