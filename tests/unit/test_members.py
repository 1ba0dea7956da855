"""What tells the hosts of a service apart: their numbers, and which of them leads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, members, placement, services
from lakehouse.model.inventory import Host, Inventory
from lakehouse.model.services import Announce, Catalogue, Numbers, Ready
from lakehouse.remote.probing import Probe, Question, Reply
from lakehouse.rolling import restart, steps
from lakehouse.rolling.facts import Living
from lakehouse.validation import numbers
from plugins.module_utils.lakehouse import probes

# crc32 of alpha1, beta2 and gamma3, in 255 numbers from 1. They never change: a quorum's data has them.
ALPHA, BETA, GAMMA = 234, 188, 205
NUMBERED = replace(services.load().services["datanode"], numbers=Numbers(1, 255))
ASKED = Ready("http", "datanode_http", path="/leader", value="leads", equals=True)
LED = replace(
    NUMBERED, announce=None, leads=ASKED, hands_over=Announce("datanode_ipc", "hdfs hand-over {place}")
)


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """The kit's catalogue, in which DataNodes have numbers and one of them leads."""
    known = services.load()
    changed = replace(known, services={**known.services, "datanode": LED})
    monkeypatch.setattr(services, "load", lambda: changed)
    return changed


def an_inventory(**given: object) -> Inventory:
    """Make an inventory whose hosts have these numbers; None for a host that is given none."""
    return Inventory(
        Path("inventory/led"),
        tuple(
            Host(
                name,
                "192.0.2.1",
                frozenset({"datanodes"}),
                {} if number is None else {members.VARIABLE: {"datanode": number}},
            )
            for name, number in given.items()
        ),
    )


def facts(found: Inventory) -> list[str]:
    """Say what validation finds."""
    given = [finding for host in found.hosts for finding in numbers.declared(host)]
    return [finding.fact for finding in given + numbers.unique(found)]


def test_a_host_keeps_its_number_when_others_leave_and_come() -> None:
    every = {name: members.number(NUMBERED, name, {}) for name in ("alpha1", "beta2", "gamma3")}
    assert len(set(every.values())) == 3
    assert all(1 <= number <= 255 for number in every.values())
    assert every == {"alpha1": ALPHA, "beta2": BETA, "gamma3": GAMMA}


def test_the_inventory_has_the_last_word() -> None:
    variables = {members.VARIABLE: {"datanode": 7, "trino": 8}}
    assert members.number(NUMBERED, "alpha1", variables) == 7


def test_a_service_without_numbers_says_so() -> None:
    with pytest.raises(LakehouseError, match=r"no numbers; next: add numbers to its row"):
        members.number(services.load().services["trino"], "alpha1", {})


def template(text: str) -> Any:
    """Evaluate a template on alpha1."""
    hostvars: dict[str, dict[str, Any]] = {"alpha1": {}, "beta2": {members.VARIABLE: {"datanode": 9}}}
    variables = {"hostvars": hostvars, "inventory_hostname": "alpha1", "groups": {}}
    return Templar(loader=DataLoader(), variables=variables).template(trust_as_template(text))


def test_a_template_has_the_number_of_each_host() -> None:
    assert template("{{ 'datanode' | member_number }}") == ALPHA
    assert template("{{ 'datanode' | member_number('beta2') }}") == 9
    with pytest.raises(AnsibleError, match="gives the hosts of trino no numbers"):
        template("{{ 'trino' | member_number }}")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"alpha1": None, "beta2": None}, []),
        ({"alpha1": 1, "beta2": 255}, []),
        ({"alpha1": 5, "beta2": 5}, ["alpha1 and beta2 have the number 5 in datanode"]),
        ({"alpha1": 256}, ["alpha1 has the number 256 in datanode"]),
        ({"alpha1": "one"}, ["lakehouse_member_numbers.datanode is 'one'"]),
        ({"alpha1": True}, ["lakehouse_member_numbers.datanode is True"]),
    ],
)
def test_each_host_has_a_number_of_its_own(given: dict[str, object], found: list[str]) -> None:
    assert facts(an_inventory(**given)) == found


def test_a_misspelt_service_is_named() -> None:
    host = Host("a", "192.0.2.1", frozenset(), {members.VARIABLE: {"datanodes": 1, "trino": 2}})
    assert [(finding.fact, finding.action) for finding in numbers.declared(host)] == [
        ("lakehouse_member_numbers.datanodes is 1", "did you mean datanode?"),
        ("lakehouse_member_numbers.trino is 2", "remove it"),
    ]


# -- Which host leads --


class Session:
    """Answers that beta2 leads, and that gamma3 does not answer."""

    def ask(self, questions: list[Question], _: float) -> dict[str, Answer[Reply]]:
        answers = {"beta2": Answer(Reply("", 0, 0)), "gamma3": unknown("timed out")}
        return {
            question.name: answers.get(question.name, unknown("leads is False"))
            for question in questions
            if isinstance(question, Probe)
        }


@pytest.fixture
def living() -> Living:
    return Living(placement.read(inventory.load("tests/inventory")), cast("Any", Session()))


def test_the_host_that_leads_is_restarted_last(living: Living) -> None:
    planned = steps.plan(living.cluster, "datanode")
    assert [step.host for step in planned] == ["alpha1", "beta2", "gamma3"]
    assert [step.host for step in restart.leaders_last(living, planned)] == ["alpha1", "gamma3", "beta2"]


def test_steps_of_other_services_stay_where_they_are(living: Living) -> None:
    led = {name for name, row in services.load().services.items() if row.leads}
    planned = steps.plan(living.cluster, steps.ALL)
    ordered = restart.leaders_last(living, planned)
    assert [step.service for step in ordered] == [step.service for step in planned]
    assert [step for step in ordered if step.service not in led] == [
        step for step in planned if step.service not in led
    ]


@pytest.mark.parametrize(("host", "hands_over"), [("beta2", True), ("alpha1", False)])
def test_the_host_that_leads_hands_over_first(living: Living, host: str, hands_over: bool) -> None:
    step = next(step for step in steps.plan(living.cluster, "datanode") if step.host == host)
    lines = restart.script(living, step).splitlines()
    assert lines[-1] == "systemctl restart hdfs-datanode.service"
    assert (f"hdfs hand-over {host}:" in lines[0]) is hands_over
    # A restart after a hand-over that failed would leave the service without a leader.
    assert lines[0].endswith("|| exit") is hands_over


# -- An answer of several --


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ('{"state": "leader", "error": null}', None),
        ('{"state": "follower", "error": null}', None),
        ('{"state": "down", "error": null}', "state is 'down' (expected one of ['leader', 'follower'])"),
    ],
)
def test_one_of_several_answers_is_right(
    monkeypatch: pytest.MonkeyPatch, answer: str, why: str | None
) -> None:
    monkeypatch.setattr(probes, "fetch", lambda _, **__: answer.encode())
    probe = {"url": "http://n1", "path": "state", "among": ["leader", "follower"]}
    said = probes.http(probe)
    assert said == (why and f"http://n1: {why}")
    assert probes.http({"url": "http://n1", "path": "error", "among": [None]}) is None
