"""Which snapshots of an Iceberg table a run expires. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

MAIN = "main"
# Streams of Flink and Spark that start again find their last commit in the summaries of snapshots; without it
# they would commit the same rows twice.
_FLINK = ("flink.job-id", "flink.operator-id")
_FLINK_CHECKPOINT = "flink.max-committed-checkpoint-id"
_SPARK = "spark.sql.streaming.queryId"
# Of a job that has ended: org.apache.iceberg.flink.sink, the last checkpoint of a bounded one.
_ENDED = str(2**63 - 1)


@dataclass(frozen=True)
class Snapshot:
    """A snapshot, its parent, its time in milliseconds since 1970 and its summary."""

    id: int
    parent: int | None
    time: int
    summary: Mapping[str, str] = field(default_factory=dict)


def expirable(
    snapshots: Iterable[Snapshot],
    refs: Mapping[str, int],
    pinned: Collection[int],
    *,
    count: int,
    oldest_kept: int,
) -> list[int]:
    """Return the snapshots of main that are older than a time and not among its last `count`.

    Snapshots with a tag or branch, pinned ones, and the last one of each streaming job stay, and those that
    are not in the history of main: a branch, or a commit in progress, may have them.
    """
    by_id = {snapshot.id: snapshot for snapshot in snapshots}
    history = list(_history(by_id, refs.get(MAIN)))
    retained = {*refs.values(), *pinned, *_streams(history)}
    return [
        snapshot.id
        for snapshot in history[max(1, count) :]
        if snapshot.time < oldest_kept and snapshot.id not in retained
    ]


def _history(by_id: Mapping[int, Snapshot], start: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, the newest first; a damaged history ends where it repeats."""
    visited = set[int]()
    while start is not None and start not in visited and (snapshot := by_id.get(start)):
        visited.add(start)
        yield snapshot
        start = snapshot.parent


def _streams(history: Iterable[Snapshot]) -> Iterator[int]:
    """Yield the newest snapshot of each streaming job."""
    jobs = set[tuple[str | None, ...]]()
    for snapshot in history:
        summary = snapshot.summary
        if summary.get(_FLINK_CHECKPOINT) == _ENDED:
            continue
        for job in (tuple(map(summary.get, _FLINK)), (summary.get(_SPARK),)):
            if job[0] is not None and job not in jobs:
                jobs.add(job)
                yield snapshot.id
