"""Which snapshots expire: none that a reference, a commit of the history or a streaming job needs."""

from __future__ import annotations

from lakehouse.upkeep.snapshots import Snapshot, expirable

DAY = 24 * 3600 * 1000
NOW = 100 * DAY


def line(count: int, **summaries: dict[str, str]) -> list[Snapshot]:
    """Return snapshots 1 to `count`, one a day; the newest is of now."""
    return [
        Snapshot(number, number - 1 or None, NOW - (count - number) * DAY, summaries.get(f"s{number}", {}))
        for number in range(1, count + 1)
    ]


def expired(
    snapshots: list[Snapshot], refs: dict[str, int], *pinned: int, count: int = 1, days: int = 0
) -> set[int]:
    return set(expirable(snapshots, refs, pinned, count=count, oldest_kept=NOW - days * DAY))


def test_the_last_and_the_young_ones_stay() -> None:
    assert expired(line(10), {"main": 10}, count=3) == {1, 2, 3, 4, 5, 6, 7}
    assert expired(line(10), {"main": 10}, count=3, days=5) == {1, 2, 3, 4}
    assert expired(line(10), {"main": 10}, count=20) == set()
    assert expired(line(10), {"main": 10}, count=0) == set(range(1, 10))


def test_references_and_pins_stay() -> None:
    assert expired(line(6), {"main": 6, "before": 2, "audit": 4}, 3, 99) == {1, 5}


def test_what_is_not_in_the_history_of_main_stays() -> None:
    staged, on_branch = Snapshot(20, 3, 0), Snapshot(21, 2, 0)
    head_of_branch = Snapshot(22, 21, NOW)
    snapshots = [*line(5), staged, on_branch, head_of_branch]
    assert expired(snapshots, {"main": 5, "work": 22}) == {1, 2, 3, 4}


def test_a_table_without_rows_has_none() -> None:
    assert expired([], {}) == set()
    assert expired(line(3), {}) == set()


def test_a_damaged_history_ends() -> None:
    circle = [Snapshot(1, 2, 0), Snapshot(2, 1, 0)]
    assert expired(circle, {"main": 2}) == {1}


def test_the_last_commit_of_each_streaming_job_stays() -> None:
    """When it starts again it looks for that commit, and would commit its rows twice without it."""
    job = {"flink.job-id": "a", "flink.operator-id": "x", "flink.max-committed-checkpoint-id": "7"}
    second = {**job, "flink.operator-id": "y"}
    stream = {"spark.sql.streaming.queryId": "q"}
    snapshots = line(9, s1=job, s2=job, s3=second, s4=stream, s5=stream)
    assert expired(snapshots, {"main": 9}) == {1, 4, 6, 7, 8}


def test_a_job_that_has_ended_needs_none() -> None:
    batch = {"flink.job-id": "a", "flink.max-committed-checkpoint-id": str(2**63 - 1)}
    assert expired(line(4, s1=batch, s2={**batch, "flink.job-id": "b"}), {"main": 4}) == {1, 2, 3}
