"""A host that will not answer again: when it is given up, and who remembers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.lakehouse import preflight_away

from lakehouse.maybe import Answer, unknown
from lakehouse.rolling import offline
from plugins.module_utils.lakehouse import away, hdfs_gate
from plugins.module_utils.lakehouse.fsck import Block, File

HERE = "tests/inventory"
LEFT = {"state": away.LEFT, "run": "r7", "since": 0}
SINCE = "no longer of the cluster since 1970-01-01 00:00 UTC"


def live(**seconds: int) -> Answer[dict[str, dict[str, Any]]]:
    return Answer({name: {"lastContact": last} for name, last in seconds.items()})


def test_a_host_of_which_hdfs_hears_is_not_given_up() -> None:
    found = offline.heard(live(n1=0, n4=12), "n4", HERE)
    assert found is not None
    assert found.fact == "HDFS counts its DataNode as live: heard of 12 s ago"
    assert found.next.startswith(f".venv/bin/ansible -i {HERE} n4 -m ping, or ")
    assert offline.heard(live(n1=0), "n4", HERE) is None


def test_what_nobody_knows_gives_no_host_up() -> None:
    found = offline.heard(unknown("no answer in 20.0 s"), "n4", HERE)
    assert found is not None
    assert found.fact == "the NameNode does not tell its DataNodes: no answer in 20.0 s"
    assert found.next == f".venv/bin/lakehouse doctor -i {HERE}"


def test_a_host_without_a_datanode_is_vouched_for_by_those_that_give_it_work() -> None:
    nobody: Answer[frozenset[str]] = Answer(frozenset())
    found = offline.serving({"trino": nobody, "spark_worker": Answer(frozenset({"w1"}))}, "n4", HERE)
    assert found is not None
    assert found.fact == "spark_worker there take work"
    assert offline.serving({"spark_worker": nobody}, "n4", HERE) is None


def test_a_leader_that_does_not_answer_vouches_for_nobodys_death() -> None:
    found = offline.serving({"spark_worker": unknown("no answer in 20.0 s")}, "n4", HERE)
    assert found is not None
    assert found.fact == "it is unknown whether spark_worker there takes work: no answer in 20.0 s"
    assert found.next == f".venv/bin/lakehouse doctor -i {HERE}"


@pytest.mark.parametrize("service", ["namenode", "metastore", "postgresql"])
def test_what_stores_and_is_alone_is_restored_and_not_given_up(service: str) -> None:
    found = offline.irreplaceable([service, "spark_history"], HERE)
    assert found is not None
    assert found.fact.startswith("no other host runs ")
    assert found.next == f"docs/operations/restore.md: .venv/bin/lakehouse restore -i {HERE}"


def test_what_is_alone_and_stores_nothing_is_placed_elsewhere() -> None:
    found = offline.irreplaceable(["spark_master"], HERE)
    assert found is not None
    assert (found.fact, found.next) == (
        "no other host runs spark_master", f"place that on another host in {HERE}",
    )  # fmt: skip
    assert offline.irreplaceable([], HERE) is None


def file(path: str, *places: str) -> File:
    return File(path, 5, 3, (Block("blk_1", 5, places),))


def test_blocks_without_a_replica_elsewhere_keep_a_host_that_may_have_one() -> None:
    whole = file("/whole", "10.0.0.14:9866", "10.0.0.11:9866")
    files = [whole, file("/none"), file("/there", "10.0.0.14:9866")]
    found = offline.unreplicated(files, "n4", "10.0.0.14")
    assert found is not None
    fact = "2 blocks have no replica elsewhere, such as one of /none: n4 may have the last"
    assert found.fact == fact
    assert "hdfs fsck / -list-corruptfileblocks" in found.next
    assert offline.unreplicated([whole, File("/empty", 0, 3, ())], "n4", "10.0.0.14") is None


def test_what_is_being_copied_lacks_a_replica_still() -> None:
    assert hdfs_gate.lacking({"LowRedundancyBlocks": 4, "PendingReconstructionBlocks": 2}) == 6


# The note of it


def test_notes_are_read_as_they_were_written() -> None:
    assert away.notes(away.noted({"n4": LEFT})) == {"n4": LEFT}
    assert away.notes("") == {}


@pytest.mark.parametrize("text", ["no JSON", "[1]", '{"n4": 7}', '{"n4": {"state": "asleep"}}'])
def test_what_is_no_note_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / away.NOTES).write_text(text, encoding="utf-8")
    [found] = preflight_away.check_away(tmp_path, "n1", ["n4"])
    assert found["fact"].startswith(f"{tmp_path / away.NOTES}: ")


def test_a_hosts_own_mark_says_more_than_a_note_of_it() -> None:
    own = away.read(away.written(away.MAINTENANCE, "r8", 0, 7200))
    assert away.of(own, LEFT) == own
    assert away.of({}, None) == {}
    assert away.told(away.of(None, LEFT)) == f"{SINCE} (run r7)"
    assert away.told(away.of({}, LEFT)) == f"{SINCE}, and answers again (run r7)"


def test_preflight_adopts_no_host_of_the_inventory_that_is_noted(tmp_path: Path) -> None:
    (tmp_path / away.NOTES).write_text(away.noted({"n4": LEFT, "n5": LEFT}), encoding="utf-8")
    [found] = preflight_away.check_away(tmp_path, "n1", {"n1": "10.0.0.11", "n4": "10.0.0.14"})
    assert (found["host"], found["action"]) == ("n4", ".venv/bin/lakehouse recommission n4")
    # A host that is in no inventory is no fault.
    assert preflight_away.check_away(tmp_path, "n1", {"n1": "10.0.0.11"}) == []
