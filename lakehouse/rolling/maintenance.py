"""`lakehouse maintenance`: put a host into maintenance mode, to reboot or repair it, or end that."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from lakehouse.next_command import command
from lakehouse.rolling import datanodes, lifecycle, restart, run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Refusal
from lakehouse.rolling.run import Request, Running, Work
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted

VERB = "maintenance"
_STATE_SECONDS = 300.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: the units of the host in stop order, or at the end in start order."""
    node = str(request.arguments["node"])
    if request.arguments["end"]:
        work = lifecycle.prepare_return(living, request.arguments, f"{VERB} {node}: starts again")
        return replace(work, words=run.typed(node, {"--end": True}))
    until = _clock(request.arguments["until"])
    host_units = lifecycle.units(living, node)[::-1]
    names = lifecycle.sole_services(living, host_units)
    notice = f"  HDFS does without its replicas and makes no others until {until}"
    return Work(
        target=node,
        arguments=request.arguments,
        plan=[asdict(step) for step in host_units],
        lines=[
            f"{VERB} {node}: stops until {until}",
            *([notice] if lifecycle.storage(host_units) else []),
            *lifecycle.unit_lines(host_units),
        ],
        question=f"Stop {counted(len(host_units), 'unit')} on {node}?",
        do=partial(_leave, host_units, request),
        danger=f"No other host runs {', '.join(names)}: the cluster is without." if names else "",
        words=run.typed(node, {"--for": request.arguments.get("for")}),
        refusal=_expired(node, float(request.arguments["until"]), request.path),
    )


def _expired(node: str, until: float, path: str) -> Refusal | None:
    """Return that a resumed maintenance is past its end, which HDFS would reject; None before."""
    if until > time.time():
        return None
    return Refusal(f"its time was over at {_clock(until)}", command(f"maintenance {node} --end", path))


def _clock(until: float) -> str:
    return datetime.fromtimestamp(until, UTC).strftime("%H:%M UTC")


def _leave(host_units: tuple[Step, ...], request: Request, running: Running) -> tuple[str, ...]:
    living, node, until = running.living, str(request.arguments["node"]), float(request.arguments["until"])
    facts = [f"{counted(len(host_units), 'unit stopped', 'units stopped')}"]
    datanode = lifecycle.storage(host_units)
    if datanode:
        restart.wait_for_gate(running, datanode, str(datanode), request, back=False)
    lifecycle.mark_as(running, node, away.MAINTENANCE, until)
    if datanode:
        lifecycle.set_hdfs_state(running, node, hdfs_hosts.IN_MAINTENANCE, until)
        running.wait(
            str(datanode), partial(lifecycle.not_in_state, living, node, datanodes.AWAY), _STATE_SECONDS
        )
        facts.append(f"HDFS does without it until {_clock(until)}")
    lifecycle.stop(running, host_units)
    return tuple(facts)
