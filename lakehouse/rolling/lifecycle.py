"""Stop or start the units of a host: shared by maintenance, decommission and scale-out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from lakehouse.maybe import Answer
from lakehouse.model import placement, selectors, services
from lakehouse.remote import operations
from lakehouse.remote.operations import Operation
from lakehouse.rolling import datanodes, marker, steps
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.rolling.run import Running, Work
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.counting import counted

NAMENODE, STORAGE = "namenode", "datanode"
# A Trino worker drains when it is stopped.
_UNIT_SECONDS = 900.0
_SERVES_SECONDS, _QUIET_SECONDS = 300.0, 20.0
_TIMER_SECONDS = 60.0
_IN_HDFS, _MARK, _TIMERS = "its state in HDFS", "its mark", "its clock"


def units(living: Living, node: str) -> tuple[Step, ...]:
    """Return the units of a host in start order; they stop in reverse order.

    Raises UsageError where the inventory has no such host.
    """
    host = selectors.host(living.cluster, node)
    return tuple(
        Step(row.name, placement.unit(row), node, steps.noticed(row, host))
        for row in services.load().services.values()
        if row in living.cluster.services[node]
    )


def storage(host_units: Iterable[Step]) -> Step | None:
    """Return the DataNode among the units of a host; None where it has none."""
    return next(_of(host_units, STORAGE), None)


def _of(host_units: Iterable[Step], service: str) -> Iterator[Step]:
    return (step for step in host_units if step.service == service)


def unit_lines(host_units: Iterable[Step]) -> list[str]:
    """Return a line for each unit, with what users notice when it stops."""
    rows = list(host_units)
    width = max((len(step.service) for step in rows), default=0)
    return [
        f"  {number:>2} {step.service.ljust(width)}  {step.noticed}".rstrip()
        for number, step in enumerate(rows, 1)
    ]


def prepare_return(
    living: Living, arguments: Mapping[str, Any], line: str, *, for_good: bool = False
) -> Work:
    """Return the plan of a host's return: its units in start order."""
    host_units = units(living, str(arguments["node"]))
    return Work(
        target=str(arguments["node"]),
        arguments=arguments,
        plan=[asdict(step) for step in host_units],
        lines=[
            line,
            *(["  HDFS counts on its replicas again"] if storage(host_units) else []),
            *(f"  {number:>2} {step.service}" for number, step in enumerate(host_units, 1)),
        ],
        question=f"Start {counted(len(host_units), 'unit')} on {arguments['node']}?",
        do=partial(_serve, host_units, for_good=for_good),
    )


def sole_services(living: Living, host_units: Iterable[Step]) -> list[str]:
    """Return the services of a host that no other host runs, or of which it is the only leader."""
    return [
        step.service for step in host_units if len(living.having(step.service)) == 1 or _leads(living, step)
    ]


def _leads(living: Living, step: Step) -> bool:
    row = services.load().services[step.service]
    return [host.name for host in living.cluster.hosts if steps.leads(row, host)] == [step.host]


def removal_command(node: str, path: str) -> str:
    """Return the next steps once a host has left."""
    return f"take {node} out of {path}, then .venv/bin/ansible-playbook -i {path} playbooks/site.yml"


def set_hdfs_state(running: Running, node: str, state: str, until: float = 0.0) -> None:
    """Set the state of a DataNode; maintenance ends at `until`, in seconds since the epoch."""
    entries = datanodes.entries(running.living)
    running.begins(node, _IN_HDFS)
    datanodes.write(running.living, hdfs_hosts.changed(entries, node, state, until))
    running.done(node, _IN_HDFS)


def not_in_state(living: Living, node: str, expected: str) -> str:
    """Return why a DataNode is not yet in a state according to the NameNode; empty when it is."""
    state = datanodes.state(living, node)
    return state.why if state.value is None else "" if state.value == expected else f"HDFS says {state.value}"


def stop(running: Running, host_units: Iterable[Step], *, for_good: bool = False) -> None:
    """Stop units one after the other, and disable them if `for_good`."""
    for step in host_units:
        _bring(running, step, operations.stopped(f"{step.unit}.service", enabled=False if for_good else None))
        running.say(f"{step}: stopped")
        running.done(step.host, step.service)


def stop_timers(running: Running, node: str) -> None:
    """Disable the timers of a host, and stop their units: a former backup host still has one of backups."""
    running.begins(node, _TIMERS)
    names = services.load().timers
    units = [
        *(operations.stopped(f"{name}.timer", enabled=False) for name in names),
        # One that failed would start again without its timer.
        *(operations.stopped(f"{name}.service") for name in names),
    ]
    answer = running.living.bring(node, units, _TIMER_SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"timers on {node}: {answer.why}", "")
    running.done(node, _TIMERS)


def mark_as(running: Running, node: str, state: str, until: float = 0.0) -> None:
    """Mark a host as away, with a state of `away.STATES`; maintenance ends at `until`."""
    running.begins(node, _MARK)
    answer = marker.put(running.living, node, away.written(state, running.journal.id, time.time(), until))
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"{node} takes no mark: {answer.why}", "")


def wait_for_answer(running: Running, step: Step, seconds: float = _SERVES_SECONDS) -> None:
    """Wait until a started unit answers, and its leader lists it."""
    no_members: Answer[frozenset[str]] = Answer(frozenset())
    running.wait(str(step), partial(running.living.serves, step, no_members), seconds, _QUIET_SECONDS)


def wait_until_settled(running: Running, step: Step, seconds: float = _SERVES_SECONDS) -> None:
    """Wait until a service has settled."""
    running.wait(str(step), partial(running.living.settled, step), seconds, _QUIET_SECONDS)


def wait_for_datanode(running: Running, node: str, seconds: float = _SERVES_SECONDS) -> None:
    """Wait until the DataNode of a host is in service for HDFS."""
    pending = partial(not_in_state, running.living, node, datanodes.SERVES)
    running.wait(f"{STORAGE} on {node}", pending, seconds)


def _serve(host_units: tuple[Step, ...], running: Running, *, for_good: bool) -> tuple[str, ...]:
    """Remove the mark of a host, start its units, and wait until each of them serves.

    First the DataNode gets its normal state in HDFS, even if the host does not answer. A NameNode that was
    stopped with the host starts before, and leaves safe mode once enough DataNodes report.
    """
    living, node = running.living, host_units[0].host

    def start(step: Step) -> None:
        _bring(running, step, operations.running(f"{step.unit}.service", enabled=for_good or None))

    datanode = storage(host_units)
    for step in _of(host_units, NAMENODE):
        start(step)
        running.wait(str(step), partial(_inactive, living), _SERVES_SECONDS, _QUIET_SECONDS)
    if datanode:
        set_hdfs_state(running, node, hdfs_hosts.NORMAL)
    running.begins(node, _MARK)
    answer = marker.take(living, node)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"{node} keeps its mark: {answer.why}", "")
    if datanode:
        start(datanode)
    for step in host_units:
        start(step)
        wait_for_answer(running, step)
        running.say(f"{step}: answers")
        running.done(node, step.service)
    for step in host_units:
        wait_until_settled(running, step)
    if datanode:
        wait_for_datanode(running, node)
    return (f"{counted(len(host_units), 'unit serves', 'units serve')}",)


def _inactive(living: Living) -> str:
    """Return why the NameNode is not active yet; empty once it is, also in safe mode."""
    state = living.bean("NameNodeStatus").then(lambda bean: str(bean["State"]))
    return state.why if state.value is None else "" if state.value == "active" else f"it is {state.value}"


def _bring(running: Running, step: Step, operation: Operation) -> None:
    running.begins(step.host, step.service)
    answer = running.living.bring(step.host, [operation], _UNIT_SECONDS)
    if not answer.known:
        raise Stopped(Ending.HALFWAY, f"at {step}: {answer.why}", "")
