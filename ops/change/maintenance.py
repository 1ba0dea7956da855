"""`lakehouse maintenance`: a host may go for a while, to reboot or to be repaired, and comes back."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lakehouse.errors import LakehouseError
from ops.change import datanodes, leaving, mark, restart, run, steps
from ops.change.ending import Ending, Stopped
from ops.change.facts import Living
from ops.change.journal import Run
from ops.change.run import Running, Work
from ops.change.steps import Step
from plugins.module_utils.lakehouse import away, hdfs_hosts

VERB = "maintenance"
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_TIME = re.compile(r"(\d+)([mhd])")
_STATE_SECONDS = 300.0


def main(options: argparse.Namespace) -> int:
    """Take a host out of service, or back into it; return the exit code of a verb that changes."""
    until = 0.0 if options.end else time.time() + seconds(options.duration)
    arguments = {"node": options.node, "end": options.end, "until": until, "wait": options.wait}
    return run.carry_out(options, VERB, partial(prepare, arguments=arguments, path=options.inventory))


def resume(options: argparse.Namespace, stopped: Run) -> int:
    """Do what a run has left undone: each step looks at the cluster first."""
    prepared = partial(prepare, arguments=stopped.arguments, path=options.inventory)
    return run.carry_out(options, VERB, prepared, stopped)


def seconds(text: str) -> float:
    """Read a time such as 30m, 2h or 1d; LakehouseError where it is none."""
    found = _TIME.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise LakehouseError(f"--for {text} is no time", "lakehouse maintenance NODE --for 2h")
    return float(int(found[1]) * _UNITS[found[2]])


def prepare(living: Living, arguments: Mapping[str, Any], path: str) -> Work:
    """Return the plan: the units of the host in the order in which they stop, or start again."""
    node = str(arguments["node"])
    steps.host(living.cluster, node)
    return _back(living, arguments) if arguments["end"] else _away(living, arguments, path)


def _away(living: Living, arguments: Mapping[str, Any], path: str) -> Work:
    node, until = str(arguments["node"]), _clock(arguments["until"])
    here = leaving.units(living, node)[::-1]
    alone = leaving.alone(living, here)
    stored = any(step.service == leaving.STORAGE for step in here)
    return Work(
        target=node,
        arguments=arguments,
        plan=[asdict(step) for step in here],
        lines=[
            f"{VERB} {node}: stops until {until}",
            *([f"  HDFS does without its replicas and makes no others until {until}"] if stored else []),
            *leaving.listed(here),
        ],
        question=f"Stop {len(here)} units on {node}?",
        do=partial(_leave, here, arguments, path),
        danger=f"Nobody else runs {', '.join(alone)}: the cluster is without." if alone else "",
    )


def _back(living: Living, arguments: Mapping[str, Any]) -> Work:
    node = str(arguments["node"])
    here = leaving.units(living, node)
    return Work(
        target=node,
        arguments=arguments,
        plan=[asdict(step) for step in here],
        lines=[f"{VERB} {node}: starts again", *(f"  {n:>2} {one.service}" for n, one in enumerate(here, 1))],
        question=f"Start {len(here)} units on {node}?",
        do=partial(_return, here),
    )


def _clock(until: float) -> str:
    return datetime.fromtimestamp(until, UTC).strftime("%H:%M UTC")


def _leave(
    here: tuple[Step, ...], arguments: Mapping[str, Any], path: str, running: Running
) -> tuple[str, ...]:
    living, node, until = running.living, str(arguments["node"]), float(arguments["until"])
    facts = [f"{len(here)} units stopped"]
    stored = next((step for step in here if step.service == leaving.STORAGE), None)
    if stored:
        restart.wait_for_gate(running, stored, str(stored), arguments, path)
    running.begins(node, "its mark")
    marked = mark.put(living, node, away.written(away.MAINTENANCE, running.journal.id, time.time(), until))
    if not marked.known:
        raise Stopped(Ending.HALFWAY, f"{node} takes no mark: {marked.why}", "")
    if stored:
        leaving.in_hdfs(running, node, hdfs_hosts.IN_MAINTENANCE, until)
        running.wait(str(stored), partial(leaving.in_state, living, node, datanodes.AWAY), _STATE_SECONDS)
        facts.append(f"HDFS does without it until {_clock(until)}")
    leaving.stop(running, here)
    return tuple(facts)


def _return(here: tuple[Step, ...], running: Running) -> tuple[str, ...]:
    leaving.serve(running, here)
    return (f"{len(here)} units serve",)
