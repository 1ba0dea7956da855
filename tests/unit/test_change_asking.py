"""What a verb that changes a cluster asks before it begins, and what its exit codes mean."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, cast

import pytest

from lakehouse.backup import create
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.outcome import Outcome
from lakehouse.rolling import maintenance, restart, run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.gate import Unit
from lakehouse.rolling.journal import Run
from lakehouse.rolling.result import Ending
from lakehouse.rolling.run import Plan, Request, Work
from lakehouse.shared_options import ChangeOptions

TABLE = "sales.orders"


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


def work(**more: Any) -> Work:
    wanted: dict[str, Any] = {"target": "b1 sales.orders", "arguments": {}, "plan": [], "lines": []}
    return Work(**wanted | {"question": "Bring it back?", "do": lambda _: ()} | more)


def confirmed(cluster: Cluster, asked: Work, *, yes: bool = False, confirm: str | None = None) -> bool:
    return run._confirmed(ChangeOptions("inv", yes=yes, confirm=confirm), cluster, asked)


@pytest.mark.parametrize(
    ("more", "options", "expected"),
    [
        ({}, {}, False),
        ({}, {"yes": True}, True),
        ({"question": ""}, {}, True),
        ({"danger": "It is lost."}, {"yes": True}, False),
        ({"danger": "It is lost.", "typed": TABLE}, {"confirm": TABLE}, True),
        ({"danger": "It is lost.", "typed": TABLE}, {"confirm": "sales"}, False),
        # Where nothing is lost the name is a yes, too, and another one is none.
        ({"typed": TABLE}, {"confirm": TABLE}, True),
        ({"typed": TABLE}, {"confirm": "sales", "yes": True}, False),
    ],
)
def test_a_loss_wants_the_name_of_what_loses(
    cluster: Cluster, more: dict[str, str], options: dict[str, Any], expected: bool
) -> None:
    assert confirmed(cluster, work(**more), **options) is expected


def test_without_another_name_it_is_the_clusters(cluster: Cluster) -> None:
    name = str(cluster.variable("lakehouse_cluster"))
    assert confirmed(cluster, work(danger="It is lost."), confirm=name)
    assert not confirmed(cluster, work(danger="It is lost.", typed=TABLE), confirm=name)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ".venv/bin/lakehouse restore b1 sales.orders -i here --yes"),
        (
            {"danger": "x", "typed": TABLE, "words": f"b1 --table {TABLE}"},
            f".venv/bin/lakehouse restore b1 --table {TABLE} -i here --confirm {TABLE}",
        ),
    ],
)
def test_the_next_command_says_yes_or_the_name(more: dict[str, str], expected: str) -> None:
    assert run.repeat_command("restore", "here", work(**more), confirmed=True) == expected


def test_a_run_that_is_only_looked_at_goes_on_by_its_own_name(cluster: Cluster) -> None:
    stopped = Run("r7", "restart", "all", {}, (), 1, 0.0, 1.0, Ending.HALFWAY, (), touched=True)
    options = ChangeOptions("inv", dry_run=True)
    planned = work(plan=[{"step": 1}], words="all --force")
    plan = Plan(cast("Living", cluster), {}, planned)
    ended = run._result(options, "restart", plan, lambda _: plan, stopped)
    assert ended.next == ".venv/bin/lakehouse resume r7 -i inv"
    fresh = run._result(options, "restart", plan, lambda _: plan, None)
    assert fresh.next == ".venv/bin/lakehouse restart all --force -i inv"


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"namenode"}, "inv: group namenode has 3 hosts"),
        (set[str](), "inv: group namenode is empty"),
    ],
)
def test_what_there_has_to_be_one_of_is_looked_at_first(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, groups: set[str], said: str
) -> None:
    known = cluster.inventory
    hosts = tuple(replace(one, groups=(one.groups - {"namenode"}) | groups) for one in known.hosts)
    monkeypatch.setattr(inventory, "load", lambda _: replace(known, hosts=hosts))
    with pytest.raises(LakehouseError, match=said):
        run.carry_out(ChangeOptions("inv"), "restart", restart.prepare, {})


def test_beyond_well_and_not_well_no_code_means_two_things() -> None:
    assert {int(one) for one in Outcome} & {int(one) for one in Ending} == {0, 1}


@pytest.mark.parametrize(
    ("last", "newer"),
    [
        ({}, False),
        ({"good": "20260102T030405Z", "why": ""}, False),
        ({"good": "20260102T030406Z", "why": ""}, True),
        ({"good": "20260102T030406Z", "why": "it was interrupted"}, False),
    ],
)
def test_a_backup_that_was_begun_is_done_once_there_is_a_newer_good_one(
    last: dict[str, str], newer: bool
) -> None:
    assert create._newer(last, "20260102T030405Z") is newer


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ({}, "it has not begun"),
        ({"good": "20260102T030405Z", "why": "disk full"}, "disk full"),
        # The unit did not start, or could not note that it did.
        ({"good": "20260102T030405Z", "why": ""}, "the last one is still 20260102T030405Z"),
        ({"good": "20260102T030406Z", "why": ""}, ""),
    ],
)
def test_the_backup_before_is_not_taken_for_the_new_one(last: dict[str, str], why: str) -> None:
    assert create.fault(last, "20260102T030405Z") == why


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"--host": None, "--force": False}, "trino"),
        ({"--host": "node2", "--force": True}, "trino --host node2 --force"),
        ({"--for": "2h; reboot"}, "trino --for '2h; reboot'"),
    ],
)
def test_what_a_person_types_again_has_the_options_that_were_given(
    options: dict[str, object], words: str
) -> None:
    assert run.typed("trino", options) == words


def test_a_restart_of_one_host_is_not_said_again_as_one_of_all(cluster: Cluster) -> None:
    asked = {"service": "datanode", "host": cluster.hosts[1].name, "force": False, "wait": 1.0}
    found = restart.prepare(cast("Living", Silent(cluster)), Request(asked, "here"))
    assert run.repeat_command("restart", "here", found) == (
        f".venv/bin/lakehouse restart datanode --host {cluster.hosts[1].name} -i here"
    )


class Silent:
    """As `Living`: no host answers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def having(self, _: str) -> tuple[Host, ...]:
        return self.cluster.hosts

    def units(self, *_: str) -> dict[str, Answer[Unit]]:
        return {host.name: unknown("no answer") for host in self.cluster.hosts}


def test_the_end_of_a_maintenance_is_said_again_as_its_end(cluster: Cluster) -> None:
    living, node = cast("Living", Silent(cluster)), cluster.hosts[1].name
    asked = {"node": node, "end": True, "for": None, "until": 0.0, "wait": 1.0}
    found = maintenance.prepare(living, Request(asked, "here"))
    assert (
        run.repeat_command("maintenance", "here", found)
        == f".venv/bin/lakehouse maintenance {node} --end -i here"
    )


@pytest.mark.parametrize(("hours", "refused"), [(1, False), (-1, True)])
def test_a_maintenance_that_is_resumed_after_its_time_is_ended_and_not_begun(
    cluster: Cluster, hours: int, refused: bool
) -> None:
    living, node = cast("Living", Silent(cluster)), cluster.hosts[1].name
    asked = {"node": node, "end": False, "for": "2h", "until": time.time() + hours * 3600, "wait": 1.0}
    found = maintenance.prepare(living, Request(asked, "here"))
    assert (found.refusal is not None) is refused
    if found.refusal:
        assert found.refusal.next == f".venv/bin/lakehouse maintenance {node} --end -i here"
