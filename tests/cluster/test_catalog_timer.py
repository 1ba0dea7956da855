"""The cluster's own history: the clock and people commit to one line, and a kill loses none of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hive_metastore.ttypes import Database

from lakehouse.clients import MetastoreSession
from lakehouse.cluster_catalog.sync import PROGRAM
from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from suites.testbed.waiting import wait_for
from tests.cluster.changing import Verb, answers, stopped, unit_of
from tests.cluster.machines import Machine, Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

UNIT, TIMER = "lakehouse-catalog.service", "lakehouse-catalog.timer"
DATABASE = "kit_clock"


@pytest.fixture
def keeper(cluster: Inventory, machines: Machines) -> Iterator[Machine]:
    """The host that keeps the history, without its clock for the time of a test."""
    host = machines[cluster.group("postgresql")[0].name]
    with stopped(host, TIMER):
        yield host


@pytest.fixture
def change(cluster: Inventory) -> Iterator[Any]:
    """What makes the catalog another one: the text is a parameter of a database that goes at the end."""
    with MetastoreSession(placement.read(cluster)) as metastore:
        made = Database(name=DATABASE, description="", parameters={})
        metastore.call("create_database", made)
        made = metastore.call("get_database", DATABASE)

        def change(text: str) -> None:
            made.parameters = {"step": text}
            metastore.call("alter_database", DATABASE, made)

        yield change
        metastore.call("drop_database", DATABASE, True, False)


def ids(verb: Verb) -> list[str]:
    return [one["id"] for one in verb.json("catalog", "log", "-n", "1000")["commits"]]


def last(keeper: Machine) -> dict[str, Any]:
    """What is noted of the last commit by the clock."""
    said: dict[str, Any] = json.loads(
        keeper.run("cat %s", f"{keeper.variable('lakehouse_catalog_dir')}/last.json")
    )
    return said


def test_a_timer_is_enabled_and_runs(cluster: Inventory, machines: Machines) -> None:
    host = machines[cluster.group("postgresql")[0].name]
    assert host.run("systemctl is-enabled %s", TIMER).strip() == "enabled"
    assert host.run("systemctl is-active %s", TIMER).strip() == "active"


@pytest.mark.longdrill
def test_the_clock_and_people_commit_to_one_line(verb: Verb, keeper: Machine, change: Any) -> None:
    change("a person's")
    own = verb.committed("-m", "by hand")
    change("the clock's")
    keeper.run("systemctl start %s", UNIT)
    clock, before, *_ = verb.json("catalog", "log")["commits"]
    assert before["id"] == own
    assert clock["parents"] == [own]
    assert clock["message"].startswith("1 database changed")
    keeper.run("systemctl start %s", UNIT)
    assert ids(verb)[0] == clock["id"]
    verb.json("catalog", "tag", f"clock-{clock['id'][:7]}-is")
    folder = keeper.variable("lakehouse_catalog_dir")
    assert f"clock-{clock['id'][:7]}-is" in keeper.run("ls %s", f"{folder}/catalog.git/refs/tags")
    verb.json("catalog", "tag", "--delete", f"clock-{clock['id'][:7]}-is")
    assert verb.json("catalog", "fsck")["findings"] == []


def test_who_was_killed_is_completed_by_the_next(verb: Verb, keeper: Machine, change: Any) -> None:
    verb.committed()
    before, user = ids(verb), keeper.variable("lakehouse_users")["hive"]
    # Of one that takes 0.3 s, and more where the host is busy.
    for hundredths in (5, 10, 15, 20, 25, 30, 60):
        change(f"killed after {hundredths}")
        program = f"timeout -s KILL {hundredths / 100} runuser -u {user} -- {PROGRAM} clock"
        # Some of them may have come to their end. It kills itself, too, which the shell has to outlive.
        assert keeper.run(f"cd / && {program} >/dev/null 2>&1; echo $?").strip() in {"0", "137"}
    change("whole")
    keeper.run("systemctl start %s", UNIT)
    after = ids(verb)
    assert after[-len(before) :] == before
    assert len(after) > len(before)
    assert verb.json("catalog", "diff", "--expect", "HEAD", "--no-data")["changes"] == []
    assert verb.json("catalog", "fsck")["findings"] == []


def test_status_says_when_the_clock_has_committed(verb: Verb, keeper: Machine) -> None:
    keeper.run("systemctl start %s", UNIT)
    noted = last(keeper)
    assert noted["why"] == ""
    status = json.loads(verb.run("status", "--json").stdout)
    assert status["cluster"]["history"]["value"]["good"] == pytest.approx(noted["good"])


@pytest.mark.drill
def test_the_clock_waits_for_a_database_that_is_restarted(verb: Verb, keeper: Machine) -> None:
    before = last(keeper)["good"]
    with stopped(keeper, unit_of(keeper, "postgresql@*")):
        keeper.run("systemctl start --no-block %s", UNIT)
        # It runs, and has said nothing yet of a database that is away.
        wait_for(
            "the clock",
            lambda: keeper.run("systemctl show -P ControlPID %s", UNIT).strip() != "0",
            seconds=30,
        )
    wait_for("a commit", lambda: last(keeper)["good"] != before, seconds=60)
    assert last(keeper)["why"] == ""
    answers(verb)
