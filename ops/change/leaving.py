"""Stops what a host runs, or has it serve again: what its maintenance and its departure have in common."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import partial

from lakehouse import services
from ops.answer import Answer
from ops.change import datanodes, mark, steps
from ops.change.ending import Ending, Stopped
from ops.change.facts import Living
from ops.change.run import Running
from ops.change.steps import Step
from ops.status import placement
from plugins.module_utils.lakehouse import hdfs_hosts

STORAGE = "datanode"
# A service may be asked to end its work, as Trino's worker does when it is stopped.
_UNIT_SECONDS = 900.0
_SERVES_SECONDS, _QUIET_SECONDS = 300.0, 20.0
_IN_HDFS = "its state in HDFS"


def units(living: Living, node: str) -> tuple[Step, ...]:
    """Return what a host runs, in the order in which it starts; its end is the other way round."""
    host = living.host(node)
    return tuple(
        Step(row.name, placement.unit(row), node, steps.noticed(row, host))
        for row in services.load().services.values()
        if row in living.cluster.services[node]
    )


def listed(here: Iterable[Step]) -> list[str]:
    """Return a line for each unit, with what users notice."""
    rows = list(here)
    width = max((len(step.service) for step in rows), default=0)
    return [
        f"  {number:>2} {step.service.ljust(width)}  {step.noticed}".rstrip()
        for number, step in enumerate(rows, 1)
    ]


def alone(living: Living, here: Iterable[Step]) -> list[str]:
    """Return the services of a host that no other host runs."""
    return [step.service for step in here if len(living.having(step.service)) == 1]


def in_hdfs(running: Running, node: str, state: str, until: float = 0.0) -> None:
    """Give a DataNode another state; maintenance ends at `until`, in seconds since the epoch."""
    listed = datanodes.entries(running.living)
    running.begins(node, _IN_HDFS)
    datanodes.write(running.living, hdfs_hosts.changed(listed, node, state, until))
    running.done(node, _IN_HDFS)


def in_state(living: Living, node: str, wanted: str) -> str:
    """Return why the NameNode does not say a state of a DataNode yet; empty when it does."""
    found = datanodes.state(living, node)
    return found.why if found.value is None else "" if found.value == wanted else f"HDFS says {found.value}"


def stop(running: Running, here: Iterable[Step], *, for_good: bool = False) -> None:
    """Stop units one after the other; `for_good` a boot does not start them either."""
    verb = "disable --now" if for_good else "stop"
    for step in here:
        # A host that has joined by half lacks some of them.
        _systemctl(running, step, verb, "if systemctl cat {unit} >/dev/null 2>&1; then {command}; fi")
        running.say(f"{step}: stopped")
        running.done(step.host, step.service)


def serve(running: Running, here: tuple[Step, ...], *, for_good: bool = False) -> None:
    """Take the mark off a host and start its units; return once each of them serves.

    HDFS counts on the host's replicas again before anything else, whether the host answers or not.
    """
    living, node = running.living, here[0].host
    stored = any(step.service == STORAGE for step in here)
    if stored:
        in_hdfs(running, node, hdfs_hosts.NORMAL)
    running.begins(node, "its mark")
    unmarked = mark.take(living, node)
    if not unmarked.known:
        raise Stopped(Ending.HALFWAY, f"{node} keeps its mark: {unmarked.why}", "")
    nobody: Answer[frozenset[str]] = Answer(frozenset())
    for step in here:
        _systemctl(running, step, "enable --now" if for_good else "start")
        running.wait(str(step), partial(living.serves, step, nobody), _SERVES_SECONDS, _QUIET_SECONDS)
        running.say(f"{step}: answers")
        running.done(node, step.service)
    for step in here:
        running.wait(str(step), partial(living.settled, step), _SERVES_SECONDS, _QUIET_SECONDS)
    if stored:
        running.wait(
            f"{STORAGE} on {node}", partial(in_state, living, node, datanodes.SERVES), _SERVES_SECONDS
        )


def _systemctl(running: Running, step: Step, verb: str, how: str = "{command}") -> None:
    running.begins(step.host, step.service)
    unit = shlex.quote(f"{step.unit}.service")
    script = how.format(unit=unit, command=f"systemctl {verb} {unit}")
    done = running.living.do(step.host, script, _UNIT_SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"at {step}: systemctl {verb}: {done.why}", "")
