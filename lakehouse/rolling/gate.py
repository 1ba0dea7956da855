"""Preconditions for stopping a unit of a host. Pure: answers in, reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakehouse.maybe import Answer
from lakehouse.model import services
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse import hdfs_gate
from plugins.module_utils.lakehouse.hdfs_gate import Blocks, Reason, Unknown


@dataclass(frozen=True)
class Unit:
    """The unit of a service on one host: whether it is active, its main PID and its invocation ID."""

    active: bool
    pid: int
    invocation: str


_NOT_AWAY = Answer("")


@dataclass(frozen=True)
class Facts:
    """The facts before a step: the unit on each host, blocks, and files with no other replica.

    For a step after which its host serves again also the host's mark, and whether its DataNode is `silent`:
    dead for the NameNode, or hanging.
    """

    units: Mapping[str, Answer[Unit]]
    blocks: Answer[Blocks] | None = None
    last: Answer[tuple[str, ...]] | None = None
    away: Answer[str] = _NOT_AWAY
    silent: bool = False


def reasons(step: Step, facts: Facts) -> tuple[Reason, ...]:
    """Return why the step must not be done now; none where it is safe.

    A unit that is not active, or a DataNode that the NameNode counts as dead, may be restarted: that takes
    no replica away. A unit that a verb has stopped on purpose may not.
    """
    unit = facts.units[step.host]
    if unit.value is None:
        return (Reason(f"{step.host} does not say how {step.service} is: {unit.why}"),)
    if facts.away.value is None:
        return (Reason(f"{step.host} does not say whether it is in maintenance: {facts.away.why}"),)
    if facts.away.value:
        return (
            Reason(f"{step.host} is marked as away ({facts.away.value}): its units are stopped on purpose"),
        )
    if not unit.value.active or facts.silent:
        return ()
    return (*_alone(step, facts), *_hdfs(step, facts))


def _alone(step: Step, facts: Facts) -> Iterator[Reason]:
    """Yield the other hosts of the service that do not serve: with this one, two would be unavailable."""
    for name, answer in facts.units.items():
        if name == step.host:
            continue
        if answer.value is None:
            yield Reason(f"{step.service} on {name} is unknown: {answer.why}", forced=True)
        elif not answer.value.active:
            yield Reason(f"{step.service} on {name} does not run", forced=True)


def _hdfs(step: Step, facts: Facts) -> tuple[Reason, ...]:
    gate = services.load().services[step.service].gate
    if gate is None or facts.blocks is None:
        return ()
    no_files: Answer[tuple[str, ...]] = Answer(())
    last = facts.last or no_files
    return hdfs_gate.reasons(
        gate.kind,
        Unknown(facts.blocks.why) if facts.blocks.value is None else facts.blocks.value,
        Unknown(last.why) if last.value is None else last.value,
    )
