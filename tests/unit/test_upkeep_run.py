"""A run: budgets, one failure delays no other, what a dry run may remove, and the statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest
from pyspark.errors import PySparkException

from lakehouse.upkeep import executor, plan, statements
from lakehouse.upkeep.executor import (
    DONE,
    FAILED,
    NO_TIME,
    REFUSED,
    Measure,
    RefusedError,
    SparkEngine,
    removable,
)
from lakehouse.upkeep.plan import Action, Cost, Table
from lakehouse.upkeep.policies import Policy

HOUR = 3600.0
ALL = Policy()
FOLDER = "hdfs://lake/root/a"


def action(name: str, policy: Policy = ALL) -> Action:
    return Action(plan.COMPACT, Table("iceberg", "db", name, FOLDER), policy, "small", Cost(1, 2, 3.0))


@dataclass
class Engine:
    """An engine in which each action takes an hour; `faults` are raised by table."""

    faults: dict[str, Exception] = field(default_factory=dict)
    time: float = 0.0
    done: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.time

    def run(self, action: Action) -> None:
        self.time += HOUR
        if fault := self.faults.get(action.table.table):
            raise fault
        self.done.append(action.table.table)

    def measure(self, _: Action, *, scan: bool) -> Measure:
        return Measure(10 - len(self.done), 100, 2.0 - len(self.done) if scan else None)


def outcomes(engine: Engine, *actions: Action, seconds: float = 10 * HOUR) -> list[str]:
    results = executor.run(actions, cast("SparkEngine", engine), seconds=seconds, clock=engine.clock)
    return [result.outcome for result in results]


def test_a_failure_is_a_line_and_the_others_are_done() -> None:
    engine = Engine(
        {"b": PySparkException("Table db.b not found\nat java"), "c": RefusedError("it is pinned")}
    )
    results = executor.run(
        [action(name) for name in "abcd"], cast("SparkEngine", engine), seconds=10 * HOUR, clock=engine.clock
    )
    assert [result.outcome for result in results] == [DONE, FAILED, REFUSED, DONE]
    assert [result.error for result in results] == ["", "Table db.b not found", "it is pinned", ""]
    assert engine.done == ["a", "d"]


def test_no_action_begins_after_the_budget_and_a_running_one_ends() -> None:
    assert outcomes(Engine(), *map(action, "abc"), seconds=1.5 * HOUR) == [DONE, DONE, NO_TIME]
    assert outcomes(Engine(), action("a"), seconds=0) == [NO_TIME]


def test_a_policy_has_a_budget_of_its_own() -> None:
    limited = Policy("db.*", minutes=60)
    engine = Engine()
    assert outcomes(engine, action("a", limited), action("b", limited), action("c")) == [DONE, NO_TIME, DONE]
    assert engine.done == ["a", "c"]


def test_an_action_has_files_bytes_and_seconds_before_and_after() -> None:
    engine = Engine()
    [result] = executor.run(
        [action("a")], cast("SparkEngine", engine), seconds=HOUR, scans=True, clock=engine.clock
    )
    document = result.document()
    assert (document["files_before"], document["files_after"]) == (10, 9)
    assert (document["bytes_before"], document["bytes_after"]) == (100, 100)
    assert (document["scan_before"], document["scan_after"]) == (2.0, 1.0)
    assert (document["table"], document["action"], document["seconds"]) == ("db.a", plan.COMPACT, HOUR)


def test_an_action_that_did_not_begin_has_no_numbers() -> None:
    engine = Engine()
    [result] = executor.run(
        [action("a")], cast("SparkEngine", engine), seconds=0, scans=True, clock=engine.clock
    )
    assert result.document()["files_before"] is None


def test_files_that_the_history_needs_stay() -> None:
    listed = [f"{FOLDER}/data/1.parquet", f"{FOLDER}/metadata/7.metadata.json"]
    assert removable(listed, FOLDER, {"/root/a/metadata/7.metadata.json"}) == listed[:1]


@pytest.mark.parametrize(
    "file",
    [
        "hdfs://other/root/a/1.parquet", "file:///root/a/1.parquet", "/root/a/1.parquet", "hdfs://lake/root/ab/1",
        "hdfs://lake/root/a",
    ],
)  # fmt: skip
def test_a_file_of_another_file_system_or_folder_ends_the_action(file: str) -> None:
    with pytest.raises(RefusedError, match=r"is not in its folder hdfs://lake/root/a"):
        removable([f"{FOLDER}/1.parquet", file], FOLDER)


ODD = Table("iceberg", "it's", "a`b", FOLDER)
TEXT = "`it\\'s`.`a``b`"


def test_the_statements_quote_names() -> None:
    assert statements.name(ODD) == "iceberg.`it's`.`a``b`"
    assert statements.call(ODD, "rewrite_manifests") == (
        f"CALL iceberg.system.rewrite_manifests(table => '{TEXT}')"
    )
    assert statements.compact(ODD, Policy(zorder=("x.y", "z"))) == (
        f"CALL iceberg.system.rewrite_data_files(table => '{TEXT}', strategy => 'sort',"
        " sort_order => 'zorder(`x`.`y`, `z`)', options => map('target-file-size-bytes', '268435456',"
        " 'delete-file-threshold', '1', 'remove-dangling-deletes', 'true',"
        " 'partial-progress.enabled', 'true'))"
    )
    assert "sort_order => '`x`'" in statements.compact(ODD, Policy(sort=("x",)))
    assert "strategy" not in statements.compact(ODD, Policy())


def test_no_snapshot_expires_by_its_age_alone() -> None:
    assert statements.expire(Table("iceberg", "a", "b", ""), [3, 2**62]) == (
        "CALL iceberg.system.expire_snapshots(table => 'a.b', older_than => TIMESTAMP '1970-01-01 00:00:00',"
        f" snapshot_ids => array(3L, {2**62}L))"
    )


def test_orphans_are_listed_before_they_are_removed() -> None:
    plain = Table("iceberg", "a", "b", "")
    listed = statements.orphans(plain, 1_000_000_000_000)
    assert listed == (
        "CALL iceberg.system.remove_orphan_files(table => 'a.b',"
        " older_than => TIMESTAMP '2001-09-09 01:46:40 UTC', dry_run => true)"
    )
    removed = statements.orphans(plain, 1_000_000_000_000, "files")
    assert removed == listed.replace("dry_run => true", "file_list_view => 'files'")


def test_delta_and_hive_have_statements_of_their_own() -> None:
    delta = Table("delta", "a", "b", "")
    assert statements.compact(delta, Policy()) == "OPTIMIZE spark_catalog.a.b"
    assert statements.compact(delta, Policy(sort=("x",))) == "OPTIMIZE spark_catalog.a.b ZORDER BY (`x`)"
    assert statements.vacuum(delta, 200, dry_run=True) == "VACUUM spark_catalog.a.b RETAIN 200 HOURS DRY RUN"
    assert statements.vacuum(delta, 200, dry_run=False) == "VACUUM spark_catalog.a.b RETAIN 200 HOURS"
    assert statements.vacuum(delta, None, dry_run=False) == "VACUUM spark_catalog.a.b"
    assert (
        statements.analyze(Table("hive", "a", "b", ""))
        == "ANALYZE TABLE spark_catalog.a.b COMPUTE STATISTICS"
    )
    assert "compute_table_stats" in statements.analyze(Table("iceberg", "a", "b", ""))
