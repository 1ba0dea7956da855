"""May this unit of this host go now? What would be lost by it. Pure: answers in, reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ops.answer import Answer
from ops.change.steps import Step
from ops.fsck import replicas
from plugins.module_utils.lakehouse.counting import counted

# Blocks of HDFS are in danger by these alone.
DATANODE = "datanode"
STORAGE = ("namenode", DATANODE)


@dataclass(frozen=True)
class Unit:
    """A service on one host: whether it serves, its main process, and systemd's word for this start of it."""

    active: bool
    pid: int
    invocation: str


@dataclass(frozen=True)
class Blocks:
    """What the NameNode counts; `placed` DataNodes are to be live, for `replication` copies of a block."""

    safemode: str
    live: int
    placed: int
    replication: int
    missing: int
    lacking: int


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


@dataclass(frozen=True)
class Reason:
    """Why a step may not be done; `forced` is one that --force overrules, which no loss of data is."""

    what: str
    forced: bool = False


def down(replication: int, datanodes: int) -> int:
    """Return how many DataNodes may be down at once: max(1, min(replication - 2, datanodes - 2))."""
    return max(1, min(replication - 2, datanodes - 2))


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
    return (*_alone(step, facts), *_blocks(step, facts))


def _alone(step: Step, facts: Facts) -> Iterator[Reason]:
    """Give the other hosts of the service that do not serve: with this one, two of them would be gone."""
    for name, answer in facts.units.items():
        if name == step.host:
            continue
        if answer.value is None:
            yield Reason(f"{step.service} on {name} is unknown: {answer.why}", forced=True)
        elif not answer.value.active:
            yield Reason(f"{step.service} on {name} does not run", forced=True)


def _blocks(step: Step, facts: Facts) -> Iterator[Reason]:
    if facts.blocks is not None:
        if facts.blocks.value is None:
            yield Reason(f"the NameNode does not count its blocks: {facts.blocks.why}")
        else:
            yield from _counted(step, facts.blocks.value)
    if facts.last is not None:
        if facts.last.value is None:
            yield Reason(f"where the replicas are is unknown: {facts.last.why}")
        elif paths := facts.last.value:
            yield Reason(
                f"{counted(len(paths), 'block')} would have no live replica, such as one of {paths[0]}; such"
                " files need two replicas (hdfs dfs -setrep 2), or their writer has to end"
            )


def _counted(step: Step, blocks: Blocks) -> Iterator[Reason]:
    if blocks.safemode:
        yield Reason("HDFS is in safe mode: nobody can write, and nothing is copied", forced=True)
    if blocks.missing:
        what = counted(blocks.missing, "block is missing already", "blocks are missing already")
        yield Reason(what, forced=True)
    if blocks.lacking:
        what = counted(blocks.lacking, "block lacks a replica", "blocks lack a replica")
        yield Reason(what, forced=True)
    gone, allowed = blocks.placed - blocks.live, down(blocks.replication, blocks.placed)
    if step.service == DATANODE and gone + 1 > allowed:
        there = f"{gone} of {counted(blocks.placed, 'DataNode')} {'is' if gone == 1 else 'are'} down already"
        yield Reason(f"{there}: with this one {gone + 1} would be, and at most {allowed} may be", forced=True)


def last_replicas(
    fsck: str, leaving: str, silent: frozenset[str] = frozenset(), *, back: bool
) -> tuple[str, ...]:
    """Return the file of each block without a replica but on `leaving` and `silent` addresses.

    `fsck` is what the NameNode prints with files, blocks, locations and openforwrite. With `back` the
    DataNode says that it restarts: a block that is being written is left out, because whoever writes to it
    alone waits for it (HDFS: DataStreamer.shouldWaitForRestart). Raises ValueError as `ops.fsck` does.
    """
    return tuple(
        path
        for path, addresses in replicas(fsck, written=not back)
        if (places := addresses - silent) and places <= {leaving}
    )
