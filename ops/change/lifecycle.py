"""Stops what a host runs, or has it serve again: what its maintenance and its departure have in common."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from lakehouse import services
from ops import selectors
from ops.change import datanodes, marker, steps
from ops.change.facts import Living
from ops.change.result import Ending, Stopped
from ops.change.run import Running, Work
from ops.change.steps import Step
from ops.maybe import Answer
from ops.status import placement
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted

NAMENODE, STORAGE = "namenode", "datanode"
# A service may be asked to end its work, as Trino's worker does when it is stopped.
_UNIT_SECONDS = 900.0
_SERVES_SECONDS, _QUIET_SECONDS = 300.0, 20.0
_CLOCK_SECONDS = 60.0
_IN_HDFS, _MARK, _CLOCK = "its state in HDFS", "its mark", "its clock"


def units(living: Living, node: str) -> tuple[Step, ...]:
    """Return what a host runs, in the order in which it starts; its end is the other way round.

    Raises UsageError where the inventory has no such host.
    """
    host = selectors.host(living.cluster, node)
    return tuple(
        Step(row.name, placement.unit(row), node, steps.noticed(row, host))
        for row in services.load().services.values()
        if row in living.cluster.services[node]
    )


def storage(here: Iterable[Step]) -> Step | None:
    """Return the DataNode among the units of a host, if it has one."""
    return next(_of(here, STORAGE), None)


def _of(here: Iterable[Step], service: str) -> Iterator[Step]:
    return (step for step in here if step.service == service)


def listed(here: Iterable[Step]) -> list[str]:
    """Return a line for each unit, with what users notice."""
    rows = list(here)
    width = max((len(step.service) for step in rows), default=0)
    return [
        f"  {number:>2} {step.service.ljust(width)}  {step.noticed}".rstrip()
        for number, step in enumerate(rows, 1)
    ]


def back(living: Living, arguments: Mapping[str, Any], line: str, *, for_good: bool = False) -> Work:
    """Return the plan of a host's return: its units in the order in which they start."""
    here = units(living, str(arguments["node"]))
    return Work(
        target=str(arguments["node"]),
        arguments=arguments,
        plan=[asdict(step) for step in here],
        lines=[
            line,
            *(["  HDFS counts on its replicas again"] if storage(here) else []),
            *(f"  {number:>2} {step.service}" for number, step in enumerate(here, 1)),
        ],
        question=f"Start {counted(len(here), 'unit')} on {arguments['node']}?",
        do=partial(_serve, here, for_good=for_good),
    )


def alone(living: Living, here: Iterable[Step]) -> list[str]:
    """Return the services of a host that no other host runs, or whose workers it alone leads."""
    return [step.service for step in here if len(living.having(step.service)) == 1 or _leads(living, step)]


def _leads(living: Living, step: Step) -> bool:
    row = services.load().services[step.service]
    return [one.name for one in living.cluster.hosts if steps.leads(row, one)] == [step.host]


def taken_out(node: str, path: str) -> str:
    """Return what is to be done once a host has left."""
    return f"take {node} out of {path}, then .venv/bin/ansible-playbook -i {path} playbooks/site.yml"


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


def unscheduled(running: Running, node: str) -> None:
    """Stop what the clock starts on a host: one that kept the backups before another did makes them still."""
    running.begins(node, _CLOCK)
    timers = " ".join(f"{name}.timer" for name in services.load().timers)
    stops = "systemctl disable --now $timer || exit"
    script = f"for timer in {timers}; do if systemctl cat $timer >/dev/null 2>&1; then {stops}; fi; done"
    done = running.living.do(node, script, _CLOCK_SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"timers on {node}: {done.why}", "")
    running.done(node, _CLOCK)


def mark_as(running: Running, node: str, state: str, until: float = 0.0) -> None:
    """Write on a host that it is away, in `away.STATES`; maintenance ends at `until`."""
    running.begins(node, _MARK)
    marked = marker.put(running.living, node, away.written(state, running.journal.id, time.time(), until))
    if not marked.known:
        raise Stopped(Ending.HALFWAY, f"{node} takes no mark: {marked.why}", "")


def answers(running: Running, step: Step, seconds: float = _SERVES_SECONDS) -> None:
    """Return once a unit that was started answers, and its leader knows it."""
    nobody: Answer[frozenset[str]] = Answer(frozenset())
    running.wait(str(step), partial(running.living.serves, step, nobody), seconds, _QUIET_SECONDS)


def settles(running: Running, step: Step, seconds: float = _SERVES_SECONDS) -> None:
    """Return once a service is what it has to be at the end."""
    running.wait(str(step), partial(running.living.settled, step), seconds, _QUIET_SECONDS)


def stores(running: Running, node: str, seconds: float = _SERVES_SECONDS) -> None:
    """Return once HDFS counts on the DataNode of a host."""
    wrong = partial(in_state, running.living, node, datanodes.SERVES)
    running.wait(f"{STORAGE} on {node}", wrong, seconds)


def _serve(here: tuple[Step, ...], running: Running, *, for_good: bool) -> tuple[str, ...]:
    """Take the mark off a host and start its units; return once each of them serves.

    HDFS counts on the host's replicas again before anything else, whether the host answers or not. A NameNode
    that was stopped with it starts for that, and leaves its safe mode once enough DataNodes report.
    """
    living, node, start = running.living, here[0].host, "enable --now" if for_good else "start"
    stored = storage(here)
    for step in _of(here, NAMENODE):
        _systemctl(running, step, start)
        running.wait(str(step), partial(_inactive, living), _SERVES_SECONDS, _QUIET_SECONDS)
    if stored:
        in_hdfs(running, node, hdfs_hosts.NORMAL)
    running.begins(node, _MARK)
    unmarked = marker.take(living, node)
    if not unmarked.known:
        raise Stopped(Ending.HALFWAY, f"{node} keeps its mark: {unmarked.why}", "")
    if stored:
        _systemctl(running, stored, start)
    for step in here:
        _systemctl(running, step, start)
        answers(running, step)
        running.say(f"{step}: answers")
        running.done(node, step.service)
    for step in here:
        settles(running, step)
    if stored:
        stores(running, node)
    return (f"{counted(len(here), 'unit serves', 'units serve')}",)


def _inactive(living: Living) -> str:
    """Return why the NameNode takes no calls yet; empty once it does, in its safe mode too."""
    found = living.bean("NameNodeStatus").then(lambda bean: str(bean["State"]))
    return found.why if found.value is None else "" if found.value == "active" else f"it is {found.value}"


def _systemctl(running: Running, step: Step, verb: str, how: str = "{command}") -> None:
    running.begins(step.host, step.service)
    unit = shlex.quote(f"{step.unit}.service")
    script = how.format(unit=unit, command=f"systemctl {verb} {unit}")
    done = running.living.do(step.host, script, _UNIT_SECONDS)
    if not done.known:
        raise Stopped(Ending.HALFWAY, f"at {step}: systemctl {verb}: {done.why}", "")
