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

from lakehouse import services
from lakehouse.errors import LakehouseError
from ops.answer import Answer
from ops.change import datanodes, restart, run, steps
from ops.change.ending import Ending, Stopped
from ops.change.facts import Living
from ops.change.journal import Run
from ops.change.run import Running, Work
from ops.change.steps import Step
from ops.status import placement
from plugins.module_utils.lakehouse import hdfs_hosts

VERB = "maintenance"
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_TIME = re.compile(r"(\d+)([mhd])")
_STATE_SECONDS, _STOP_SECONDS = 300.0, 900.0
_QUIET_SECONDS = 20.0


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
    here = placed(living, node, end=bool(arguments["end"]))
    alone = [step.service for step in here if len(living.having(step.service)) == 1]
    end = "starts again" if arguments["end"] else f"stops until {_clock(arguments['until'])}"
    leaving = not arguments["end"]
    return Work(
        target=node,
        arguments=arguments,
        plan=[asdict(step) for step in here],
        lines=[
            f"{VERB} {node}: {end}",
            *(
                [f"  HDFS does without its replicas and makes no others until {_clock(arguments['until'])}"]
                if leaving and any(step.service == "datanode" for step in here)
                else []
            ),
            *(f"  {number:>2} {step.service}" for number, step in enumerate(here, 1)),
        ],
        question=f"{'Stop' if leaving else 'Start'} {len(here)} units on {node}?",
        do=partial(_leave if leaving else _return, here, arguments, path),
        danger=f"Nobody else runs {', '.join(alone)}: the cluster is without." if leaving and alone else "",
    )


def placed(living: Living, node: str, *, end: bool) -> tuple[Step, ...]:
    """Return the units of a host as they start, or from the last one to the first as they stop."""
    rows = [row for row in services.load().services.values() if row in living.cluster.services[node]]
    here = tuple(Step(row.name, placement.unit(row), node, "") for row in rows)
    return here if end else tuple(reversed(here))


def _clock(until: float) -> str:
    return datetime.fromtimestamp(until, UTC).strftime("%H:%M UTC")


def _leave(
    here: tuple[Step, ...], arguments: Mapping[str, Any], path: str, running: Running
) -> tuple[str, ...]:
    living, node, until = running.living, str(arguments["node"]), float(arguments["until"])
    facts = [f"{len(here)} units stopped"]
    if stored := [step for step in here if step.service == "datanode"]:
        restart.wait_for_gate(running, stored[0], str(stored[0]), arguments, path)
        listed = datanodes.entries(living)
        running.begins(node, "its state in HDFS")
        datanodes.write(living, hdfs_hosts.changed(listed, node, hdfs_hosts.IN_MAINTENANCE, until))
        running.wait(f"datanode on {node}", partial(_is, living, node, datanodes.AWAY), _STATE_SECONDS)
        running.done(node, "in maintenance")
        facts.append(f"HDFS does without it until {_clock(until)}")
    for step in here:
        running.begins(node, step.service)
        done = living.do(node, f"systemctl stop {step.unit}.service", _STOP_SECONDS)
        if not done.known:
            raise Stopped(Ending.HALFWAY, f"at {step}: systemctl stop: {done.why}", "")
        running.say(f"{step}: stopped")
        running.done(node, step.service)
    return tuple(facts)


def _return(here: tuple[Step, ...], _: Mapping[str, Any], __: str, running: Running) -> tuple[str, ...]:
    """Have HDFS count on the host again, whether it answers or not, and start what it runs."""
    living, node = running.living, here[0].host
    stored = any(step.service == "datanode" for step in here)
    if stored:
        listed = datanodes.entries(living)
        running.begins(node, "its state in HDFS")
        datanodes.write(living, hdfs_hosts.changed(listed, node, hdfs_hosts.NORMAL))
    nobody: Answer[frozenset[str]] = Answer(frozenset())
    for step in here:
        running.begins(node, step.service)
        done = living.do(node, f"systemctl start {step.unit}.service", _STOP_SECONDS)
        if not done.known:
            raise Stopped(Ending.HALFWAY, f"at {step}: systemctl start: {done.why}", "")
        running.wait(str(step), partial(living.serves, step, nobody), _STATE_SECONDS, _QUIET_SECONDS)
        running.say(f"{step}: answers")
        running.done(node, step.service)
    for step in here:
        running.wait(str(step), partial(living.settled, step), _STATE_SECONDS, _QUIET_SECONDS)
    if stored:
        running.wait(f"datanode on {node}", partial(_is, living, node, datanodes.SERVES), _STATE_SECONDS)
    return (f"{len(here)} units serve",)


def _is(living: Living, node: str, wanted: str) -> str:
    """Return why a DataNode is not in a state yet; empty when it is."""
    found = datanodes.state(living, node)
    return found.why if found.value is None else "" if found.value == wanted else f"HDFS says {found.value}"
