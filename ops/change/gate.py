"""Preconditions for stopping a unit of a host. Pure: answers in, reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakehouse import services
from ops.change.steps import Step
from ops.maybe import Answer
from plugins.module_utils.lakehouse import hdfs_gate
from plugins.module_utils.lakehouse.hdfs_gate import Blocks, Reason, Unknown


@dataclass(frozen=True)
class Unit:
    """A service on one host: whether it serves, its main process, and systemd's word for this start of it."""

    active: bool
    pid: int
    invocation: str


_HERE = Answer("")


@dataclass(frozen=True)
class Facts:
    """What is known before a step: its service by host, blocks, and files with no other replica.

    Of a step after which its host is back, too: how its host is marked, and whether its DataNode is `silent`,
    which is dead for the NameNode or hangs.
    """

    units: Mapping[str, Answer[Unit]]
    blocks: Answer[Blocks] | None = None
    last: Answer[tuple[str, ...]] | None = None
    away: Answer[str] = _HERE
    silent: bool = False


def reasons(step: Step, facts: Facts) -> tuple[Reason, ...]:
    """Return why the step may not be done now; none if nothing is lost by it.

    A unit that does not serve, or of which the NameNode does not hear, may be restarted: there is nothing
    that it could take away. One that a verb has stopped on purpose may not.
    """
    own = facts.units[step.host]
    if own.value is None:
        return (Reason(f"{step.host} does not say how {step.service} is: {own.why}"),)
    if facts.away.value is None:
        return (Reason(f"{step.host} does not say whether it is in maintenance: {facts.away.why}"),)
    if facts.away.value:
        return (
            Reason(f"{step.host} is marked as away ({facts.away.value}): its units are stopped on purpose"),
        )
    if not own.value.active or facts.silent:
        return ()
    return (*_alone(step, facts), *_hdfs(step, facts))


def _alone(step: Step, facts: Facts) -> Iterator[Reason]:
    """Give the other hosts of the service that do not serve: with this one, two of them would be gone."""
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
    nothing: Answer[tuple[str, ...]] = Answer(())
    last = facts.last or nothing
    return hdfs_gate.reasons(
        gate.kind,
        Unknown(facts.blocks.why) if facts.blocks.value is None else facts.blocks.value,
        Unknown(last.why) if last.value is None else last.value,
    )
