"""An upgrade that goes on, goes back, and is resumed: the real loop and journal, on hosts that are tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakehouse import artifacts
from lakehouse import run as programs
from lakehouse.artifacts import manifest, releases
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.placement import Cluster
from lakehouse.rolling import journal, restart
from lakehouse.rolling.facts import Living
from lakehouse.rolling.gate import Facts, Unit
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.rolling.run import Request, Running
from lakehouse.rolling.steps import Step
from lakehouse.run import ROOT
from lakehouse.upgrade import hdfs, planner, preparation, proof, release_switch
from lakehouse.upgrade.planner import Release, Row
from lakehouse.upgrade.proof import Proof
from lakehouse.upgrade.release_switch import Task, Upgrade

OLD, NEW = "476-a", "476-b"
HOSTS = ["alpha1", "gamma3", "beta2"]


class Hosts:
    """As `Living`: a link and a process by host. A unit that is started from `bad` never answers."""

    def __init__(self, cluster: Cluster, bad: dict[str, str]) -> None:
        self.cluster = cluster
        self.bad = bad
        self.links = dict.fromkeys(HOSTS, OLD)
        self.runs = dict.fromkeys(HOSTS, OLD)
        self.starts = dict.fromkeys(HOSTS, 0)
        self.did: list[str] = []
        self.down: set[str] = set()
        self.killed_at = ""

    def units(self, *_: object) -> dict[str, Answer[Unit]]:
        return {name: Answer(Unit(name not in self.down, 1, str(self.starts[name]))) for name in HOSTS}

    def facts(self, _: Step, *, back: bool) -> Facts:
        assert back
        return Facts(self.units())

    def members(self, _: Step) -> Answer[frozenset[str]]:
        return Answer(frozenset())

    def do(self, host: str, script: str, _: float) -> Answer[str]:
        assert script == "systemctl restart trino.service"
        self.did.append(f"{host} restarts")
        self.starts[host] += 1
        self.runs[host] = self.links[host]
        return Answer("")

    def serves(self, step: Step, _: object, *, alone: bool) -> str:
        assert alone is False
        self.down.discard(step.host)
        if self.bad.get(step.host) == self.runs[step.host]:
            self.down.add(step.host)
            return "it is not active"
        return ""

    def settled(self, _: Step) -> str:
        return ""

    def playbook(self, _: str, __: str, *options: str, log: str) -> int:
        limit = options[options.index("--limit") + 1]
        told = json.loads(options[options.index("--extra-vars") + 1])
        if log == "upgrade-beside":
            self.did.append(f"beside on {limit}")
            return 0
        if self.killed_at == f"{log} {limit}":
            self.killed_at = ""
            raise KeyboardInterrupt
        self.links[limit] = told["lakehouse_pinned"]["trino"]
        self.did.append(f"{limit} has {self.links[limit]}")
        return 1


class Stage:
    """A cluster on which Trino is upgraded, with the journal of a run."""

    def __init__(self, folder: Path, bad: dict[str, str]) -> None:
        self.hosts = Hosts(placement.read(inventory.load("tests/inventory")), bad)
        self.living = cast("Living", self.hosts)
        bill = manifest.load(ROOT / "versions.yml")
        self.upgrade = Upgrade(bill, "versions.yml", Request({"ready": 0.0, "wait": 0.0}, "inv"))
        there = {name: {"trino": Release(OLD, {})} for name in HOSTS}
        planned = planner.rows(self.hosts.cluster, {"trino"}, there, {"trino": Release(NEW, {})})
        self.rows = preparation._with_invocations(self.living, planned)
        self.folder = folder

    def run(self) -> Running:
        plan = [planner.written(row) for row in self.rows]
        return Running(self.living, journal.begin(self.folder, "upgrade", "trino", {}, plan))

    def begin(self, running: Running) -> tuple[str, ...]:
        return release_switch.carry_out(self.upgrade, Task(self.rows, self.rows, (), ()), running)

    def again(self, running: Running) -> tuple[str, ...]:
        """What `resume` does."""
        text = (self.folder / f"{running.journal.id}.jsonl").read_text(encoding="utf-8")
        stopped = journal.read(running.journal.id, text)
        assert stopped is not None
        there = {name: {"trino": Release(link, {})} for name, link in self.hosts.links.items()}
        task = preparation._remaining(self.living, stopped, there)
        return release_switch.carry_out(self.upgrade, task, Running(self.living, running.journal))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Stage:
    found = Stage(tmp_path, getattr(request, "param", {}))
    monkeypatch.setattr(programs, "playbook", found.hosts.playbook)
    monkeypatch.setattr(artifacts, "fetch", lambda *_: None)
    monkeypatch.setattr(releases, "ensure", lambda *_: None)
    monkeypatch.setattr(proof, "find", lambda *_: None)
    return found


def test_a_host_is_switched_right_before_its_unit_is_restarted(stage: Stage) -> None:
    [fact] = stage.begin(stage.run())
    assert stage.hosts.did == [
        "beside on alpha1,beta2,gamma3",
        *(line for name in HOSTS for line in (f"{name} has {NEW}", f"{name} restarts")),
    ]
    assert fact.startswith(f"trino {NEW} on 3 hosts in ")


def test_where_all_is_done_a_resume_runs_no_playbook(stage: Stage) -> None:
    running = stage.run()
    stage.begin(running)
    stage.hosts.did.clear()
    assert stage.again(running) == ()
    assert stage.hosts.did == []


def test_a_run_whose_lock_was_broken_takes_nothing_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that has broken it may have finished the upgrade since."""
    running = stage.run()
    begins = Running.begins

    def broken(own: Running, host: str, what: str) -> None:
        if own.hosts or stage.hosts.did[1:]:
            raise Stopped(Ending.LOCKED, "its lock was broken", "")
        begins(own, host, what)

    monkeypatch.setattr(Running, "begins", broken)
    with pytest.raises(Stopped, match="its lock was broken") as stopped:
        stage.begin(running)
    assert stopped.value.ending is Ending.LOCKED
    assert stage.hosts.did[1:] == [f"alpha1 has {NEW}", "alpha1 restarts"]


@pytest.mark.parametrize("stage", [{"gamma3": NEW}], indirect=True)
def test_one_that_does_not_serve_takes_its_component_back_the_last_one_first(stage: Stage) -> None:
    running = stage.run()
    with pytest.raises(Stopped) as stopped:
        stage.begin(running)
    assert stopped.value.ending is Ending.BACK
    assert stopped.value.fact.startswith(f"trino serves {OLD} again on 2 hosts: ")
    assert "it is not active" in stopped.value.fact
    assert stopped.value.next == ".venv/bin/lakehouse logs trino -i inv, then versions.yml"
    assert release_switch._look([]) == "doctor"
    assert stage.hosts.did[-4:] == [
        f"gamma3 has {OLD}", "gamma3 restarts", f"alpha1 has {OLD}", "alpha1 restarts",
    ]  # fmt: skip
    assert set(stage.hosts.links.values()) == set(stage.hosts.runs.values()) == {OLD}
    assert f"beta2 has {NEW}" not in stage.hosts.did


def test_an_engine_that_answers_no_query_takes_it_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [("", "16"), ("no such plugin", "")]
    monkeypatch.setattr(proof, "run_statement", lambda *_: answers.pop(0))
    monkeypatch.setattr(proof, "find", lambda *_: Proof("trino", *_first(proof.run_statement(*_))))
    with pytest.raises(Stopped) as stopped:
        stage.begin(stage.run())
    assert stopped.value.ending is Ending.BACK
    assert "trino: SELECT 1: no such plugin" in stopped.value.fact
    assert set(stage.hosts.runs.values()) == {OLD}


def _first(found: tuple[str, str]) -> tuple[str, str]:
    return "SELECT 1", found[1]


def test_an_engine_that_answers_nothing_before_is_left_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "find", lambda *_: Proof("trino", "SELECT 1", "", "trino does not answer"))
    with pytest.raises(Stopped) as stopped:
        stage.begin(stage.run())
    assert stopped.value.ending is Ending.REFUSED
    assert stage.hosts.did == []


def test_a_gate_that_is_shut_before_the_first_host_changes_nothing(stage: Stage) -> None:
    stage.hosts.down = {"beta2"}
    with pytest.raises(Stopped) as stopped:
        stage.begin(stage.run())
    assert (stopped.value.ending, stopped.value.fact) == (
        Ending.REFUSED,
        "at trino on alpha1: trino on beta2 does not run",
    )
    assert stage.hosts.did == ["beside on alpha1,beta2,gamma3"]


@pytest.mark.parametrize("stage", [{"alpha1": OLD, "gamma3": NEW}], indirect=True)
def test_a_way_back_that_fails_is_said_and_can_be_resumed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restart, "READY_SECONDS", 0.0)
    running = stage.run()
    with pytest.raises(Stopped) as stopped:
        stage.begin(running)
    assert stopped.value.ending is Ending.HALFWAY
    assert "; and on the way back: " in stopped.value.fact
    stage.hosts.bad = {}
    with pytest.raises(Stopped) as stopped:
        stage.again(running)
    assert stopped.value.ending is Ending.BACK
    assert set(stage.hosts.runs.values()) == {OLD}


@pytest.mark.parametrize("at", HOSTS)
def test_a_run_that_was_killed_goes_on_where_it_was(stage: Stage, at: str) -> None:
    running, stage.hosts.killed_at = stage.run(), f"upgrade-switch {at}"
    with pytest.raises(KeyboardInterrupt):
        stage.begin(running)
    before = len(stage.hosts.did)
    stage.again(running)
    assert set(stage.hosts.runs.values()) == {NEW}
    assert [line for line in stage.hosts.did[before:] if line.endswith("restarts")] == [
        f"{name} restarts" for name in HOSTS[HOSTS.index(at) :]
    ]


@pytest.mark.parametrize("stage", [{"gamma3": NEW}], indirect=True)
def test_a_run_that_was_killed_on_its_way_back_goes_on_back(stage: Stage) -> None:
    running, stage.hosts.killed_at = stage.run(), "upgrade-back alpha1"
    with pytest.raises(KeyboardInterrupt):
        stage.begin(running)
    assert stage.hosts.runs["alpha1"] == NEW
    with pytest.raises(Stopped) as stopped:
        stage.again(running)
    assert stopped.value.ending is Ending.BACK
    assert set(stage.hosts.runs.values()) == {OLD}


def test_a_playbook_that_fails_before_a_switch_changes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise LakehouseError("disk full", "df")

    monkeypatch.setattr(programs, "playbook", full)
    with pytest.raises(Stopped) as stopped:
        stage.begin(stage.run())
    assert stopped.value.ending is Ending.FAILED


def test_what_is_unknown_of_a_unit_is_not_done(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    running = stage.run()
    stage.begin(running)
    silent: dict[str, Answer[Any]] = {name: unknown("silent") for name in HOSTS}
    stopped = journal.read("r1", (stage.folder / "r1.jsonl").read_text(encoding="utf-8"))
    assert stopped is not None
    there = {name: {"trino": Release(NEW, {})} for name in HOSTS}
    assert preparation._remaining(stage.living, stopped, there).remaining == ()
    monkeypatch.setattr(stage.hosts, "units", lambda *_: silent)
    assert len(preparation._remaining(stage.living, stopped, there).remaining) == len(HOSTS)


def test_another_version_of_trino_is_mixed_and_another_build_is_not() -> None:
    assert Row("trino", "n1", "475-a", "476-a", ()).mixed
    assert not Row("trino", "n1", "476-a", "476-b", ()).mixed
    assert not Row("spark", "n1", "4.1.3-a", "4.1.4-a", ()).mixed


def test_what_has_left_since_is_none_of_a_run_that_goes_on(stage: Stage) -> None:
    plan = tuple(planner.written(row) for row in stage.rows)
    stopped = journal.Run("r1", "upgrade", "trino", {}, plan, 1, 0.0, 1.0, Ending.HALFWAY, (), touched=True)
    there = {name: {"trino": Release(OLD, {})} for name in HOSTS if name != "gamma3"}
    task = preparation._remaining(stage.living, stopped, there)
    assert {row.host for row in task.remaining} == {"alpha1", "beta2"}


def test_a_bill_that_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    tmp_path.joinpath("next.yml").write_text('spark: "4.1\n', encoding="utf-8")
    with pytest.raises(LakehouseError, match=r"next.yml is no YAML: .*quoted scalar"):
        preparation._raw("next.yml")
    tmp_path.joinpath("next.yml").write_bytes(b"spark: \xff\xfe\n")
    with pytest.raises(LakehouseError, match=r"next.yml is no YAML: "):
        preparation._raw("next.yml")


def test_who_does_not_say_its_layout_refuses_the_way_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = hdfs.PendingUpgrade(0.0, "3.4.2-a", frozenset({"namenode -67"}))
    row = replace(stage.rows[0], component="hadoop", old="3.5.0-a", new="3.4.2-a")
    monkeypatch.setattr(stage.hosts, "having", lambda _: stage.hosts.cluster.hosts[:1], raising=False)

    def silent(_: Living) -> frozenset[str]:
        raise Stopped(Ending.REFUSED, "alpha1 does not say", "lakehouse doctor")

    monkeypatch.setattr(hdfs, "pending_upgrade", lambda _: Answer(found))
    monkeypatch.setattr(hdfs, "refusal", lambda *_: None)
    monkeypatch.setattr(hdfs, "layouts", silent)
    there = {stage.hosts.cluster.hosts[0].name: {"hadoop": Release("3.5.0-a", {})}}
    _, reason = preparation._ordered_for_hdfs(stage.living, (row,), there, "inv")
    assert reason is not None
    assert (reason.fact, reason.next) == ("alpha1 does not say", "lakehouse doctor")
