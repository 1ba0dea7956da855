"""Two runs at once: a plan is done as it was confirmed or not at all, and a lock that lives is not broken."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakehouse.maybe import Answer
from lakehouse.model import inventory, placement
from lakehouse.model.placement import Cluster
from lakehouse.remote.probing import Reply
from lakehouse.rolling import journal, lock, marker, restart, run, steps
from lakehouse.rolling.facts import Living
from lakehouse.rolling.gate import Unit
from lakehouse.rolling.result import Ending, Refusal
from lakehouse.rolling.run import Plan, Prepare, Request, Running, Work
from lakehouse.shared_options import ChangeOptions
from plugins.module_utils.lakehouse import away
from tests.unit.one_host import HOLDER, Host, OneHost, begun, carried_out

UNIT = Unit(active=True, pid=7, invocation="a")


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


class Restarting(OneHost):
    """Where every unit runs; each look finds another process, as of a unit that starts again and again."""

    looks = 0

    def of(self, cluster: Cluster) -> Restarting:
        return Restarting(self.host, cluster)

    def units(self, *_: str) -> dict[str, Answer[Unit]]:
        assert self.cluster is not None
        Restarting.looks += 1
        found = replace(UNIT, invocation=str(Restarting.looks))
        return {one.name: Answer(found) for one in self.cluster.hosts}


class Runs:
    """`restart spark_worker`, whose person is asked while something else happens to the cluster."""

    def __init__(self, cluster: Cluster, host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster, self.host, self.folder = cluster, host, folder
        self.marks: dict[str, away.Mark] = {}
        self.restarted: list[str] = []
        self.monkeypatch = monkeypatch
        monkeypatch.setattr(marker, "of", lambda _: dict(self.marks))
        monkeypatch.setattr(run, "folder", lambda _: folder)
        monkeypatch.setattr(restart, "_do", self._do)

    def _do(self, left: Any, *_: object) -> tuple[str, ...]:
        self.restarted = [step.host for step in left]
        return ("restarted",)

    def ended(self, meanwhile: Callable[[], None], stopped: journal.Run | None = None) -> Any:
        arguments = {"service": "spark_worker", "host": None, "force": False, "wait": 1.0}
        request = Request(arguments, "inv", stopped)
        everybody = cast("Living", Restarting(self.host, self.cluster))

        def read(how: Prepare | None = None) -> Plan:
            return run._read(everybody, how or restart.prepare, request)

        def answer(_: str) -> str:
            meanwhile()
            return "y"

        self.monkeypatch.setattr(run, "_prompt", answer)
        return run._result(ChangeOptions("inv", as_json=True), "restart", read(), read, stopped)


@pytest.fixture
def two(cluster: Cluster, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(cluster, host, tmp_path / "runs", monkeypatch)


def marked(state: str) -> away.Mark:
    return away.read(away.written(state, "r9", 0.0, 60.0))


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (away.MAINTENANCE, "gamma3 is in maintenance since the plan was shown; nothing was changed"),
        (away.LEFT, "gamma3 has left the cluster since the plan was shown; nothing was changed"),
    ],
)
def test_a_host_that_goes_while_a_person_is_asked_is_not_started(
    two: Runs, host: Host, state: str, said: str
) -> None:
    ended = two.ended(lambda: two.marks.update(gamma3=marked(state)))
    assert (ended.ending, ended.facts[0]) == (Ending.REFUSED, said)
    assert ended.next == ".venv/bin/lakehouse restart spark_worker -i inv"
    assert two.restarted == []
    [told] = journal.runs(two.folder)
    assert (told.touched, told.resumable) == (False, False)
    assert lock.locks({"n1": host(lock.look())}) == {}


def test_a_host_that_comes_back_while_a_person_is_asked_makes_another_plan(two: Runs) -> None:
    two.marks.update(gamma3=marked(away.MAINTENANCE))
    ended = two.ended(two.marks.clear)
    assert ended.facts[0] == "gamma3 is back since the plan was shown; nothing was changed"
    assert two.restarted == []


def test_a_process_that_starts_again_meanwhile_makes_no_other_plan(two: Runs) -> None:
    ended = two.ended(lambda: None)
    assert ended.ending is Ending.DONE
    assert two.restarted == ["alpha1", "beta2", "gamma3"]
    # What resume compares with are the processes under the lock.
    [told] = journal.runs(two.folder)
    assert {step["invocation"] for step in told.plan} == {str(Restarting.looks)}


def test_a_run_that_goes_on_looks_at_marks_under_the_lock_too(two: Runs, cluster: Cluster) -> None:
    own = begun(two.folder)
    path = two.folder / f"{own.id}.jsonl"
    own.planned(
        {}, [asdict(step) for step in restart.with_invocations(
            cast("Living", Restarting(two.host, cluster)), steps.plan(cluster, "spark_worker")
        )],
    )  # fmt: skip
    own.write("ended", ending=int(Ending.HALFWAY), facts=[])
    [stopped] = journal.runs(two.folder)
    ended = two.ended(lambda: two.marks.update(gamma3=marked(away.MAINTENANCE)), replace(
        stopped, plan=tuple({**one, "invocation": None} for one in stopped.plan)
    ))  # fmt: skip
    # The plan names the host, so that the refusal is the verb's own.
    assert (ended.ending, ended.facts[0]) == (Ending.REFUSED, "gamma3 is in maintenance; nothing was changed")
    assert ended.next == ".venv/bin/lakehouse maintenance gamma3 --end -i inv"
    assert two.restarted == []
    assert path.exists()


def test_what_differs_of_a_plan_is_named(cluster: Cluster) -> None:
    work = Work("t", {}, [{"step": 1}], ["plan", "  one"], "Do it?", lambda _: ())
    before = Plan(cast("Living", cluster), {}, work)

    def differs(**changes: Any) -> str:
        found = run.difference(before, replace(before, work=replace(work, **changes)))
        return "" if found is None else found.fact

    assert differs() == ""
    assert differs(plan=[{"step": 1, "invocation": "b"}]) == ""
    assert differs(lines=["plan", "  one", "  two"]).endswith(": it has 'two'")
    assert differs(lines=["plan"]).endswith(": it lacks 'one'")
    assert differs(plan=[{"step": 2}]).endswith(": its steps differ")
    assert differs(danger="It is lost.").endswith(": its steps differ")
    assert differs(refusal=Refusal("no room", "df")) == "no room"


# The lock of another run

OTHER = replace(HOLDER, run="r5", machine="ops2", mark="0123456789abcdef")


def silent(tmp_path: Path) -> None:
    os.utime(tmp_path / "run.lock", (0, 0))


def broken(host: Host, tmp_path: Path, token: str) -> Any:
    running = Running(cast("Living", OneHost(host)), begun(tmp_path / "runs"))
    work = Work("datanode", {}, [], [], "", lambda _: ("done",))
    return carried_out(running, work, break_lock=token)


def test_a_lock_is_named_by_run_machine_and_mark() -> None:
    assert [OTHER.token] == ["r5@ops2:01234567"]


def test_the_lock_of_a_run_that_was_heard_of_is_not_broken(host: Host, tmp_path: Path) -> None:
    host(lock.take(OTHER))
    ended = broken(host, tmp_path, OTHER.token)
    assert ended.ending is Ending.LOCKED
    assert ended.facts[0].startswith("r5 restart, pid 4121 of ops on ops2 since ")
    assert ended.facts[0].endswith(" s ago: its lock is not broken")
    assert ended.next == ".venv/bin/lakehouse runs -i inv"
    assert lock.locks({"n1": host(lock.look())})["n1"].holder == OTHER


@pytest.mark.parametrize("token", ["r5", "r5@ops1:01234567", "r5@ops2:76543210", "r6@ops2:01234567"])
def test_a_run_of_another_checkout_with_the_same_number_keeps_its_lock(
    host: Host, tmp_path: Path, token: str
) -> None:
    host(lock.take(OTHER))
    silent(tmp_path)
    ended = broken(host, tmp_path, token)
    assert ended.ending is Ending.LOCKED
    again = f"lakehouse restart datanode -i inv --break-lock {OTHER.token}"
    assert ended.next == f"{again}, or resume r5 on ops2"
    assert lock.locks({"n1": host(lock.look())})["n1"].holder == OTHER


def test_the_lock_of_a_run_that_is_not_heard_of_is_broken_by_its_name(host: Host, tmp_path: Path) -> None:
    host(lock.take(OTHER))
    silent(tmp_path)
    assert broken(host, tmp_path, OTHER.token).ending is Ending.DONE
    assert lock.locks({"n1": host(lock.look())}) == {}


def test_one_that_is_heard_of_again_at_that_moment_keeps_its_lock(host: Host, tmp_path: Path) -> None:
    host(lock.take(OTHER))
    host(lock.break_stale(OTHER.mark))
    assert lock.locks({"n1": host(lock.look())})
    silent(tmp_path)
    host(lock.break_stale("another"))
    assert lock.locks({"n1": host(lock.look())})
    host(lock.break_stale(OTHER.mark))
    assert lock.locks({"n1": host(lock.look())}) == {}


def killed(folder: Path) -> journal.Run:
    """A run of a process that is gone, and that held a lock."""
    script = (
        "import sys; from pathlib import Path; from lakehouse.rolling import journal\n"
        "own = journal.begin(Path(sys.argv[1]), 'restart', 'datanode', {}, [{'host': 'n1'}])\n"
        "own.write(journal.LOCKS, mark='0123456789abcdef'); own.write(journal.BEGINS, host='n1', what='x')\n"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, env={**os.environ})
    return journal.runs(folder)[-1]


def goes_on(host: Host, folder: Path, dead: journal.Run) -> Running:
    own = journal.Journal(folder / f"{dead.id}.jsonl")
    return Running(cast("Living", OneHost(host)), own, orphaned_locks=dead.marks)


def test_a_lock_of_a_process_that_is_gone_says_resume_and_resume_takes_it(host: Host, tmp_path: Path) -> None:
    dead = killed(tmp_path / "runs")
    assert dead.state == journal.KILLED
    # It was heard of a moment ago, and is gone all the same.
    host(lock.take(replace(OTHER, run=dead.id)))
    ended = broken(host, tmp_path, "")
    assert (ended.ending, ended.next) == (Ending.LOCKED, f".venv/bin/lakehouse resume {dead.id} -i inv")
    resumed = Running(
        cast("Living", OneHost(host)),
        journal.Journal(tmp_path / "runs" / f"{dead.id}.jsonl"),
        orphaned_locks=dead.marks,
    )
    work = Work("datanode", {}, [], [], "", lambda _: ("done",))
    assert carried_out(resumed, work).ending is Ending.DONE
    assert lock.locks({"n1": host(lock.look())}) == {}


def test_a_run_takes_no_lock_of_another_run_for_its_own(host: Host, tmp_path: Path) -> None:
    """Of another checkout, with the same number on a machine of the same name."""
    dead = killed(tmp_path / "runs")
    host(lock.take(replace(OTHER, run=dead.id, machine=HOLDER.machine, mark="another")))
    resumed = Running(
        cast("Living", OneHost(host)),
        journal.Journal(tmp_path / "runs" / f"{dead.id}.jsonl"),
        orphaned_locks=dead.marks,
    )
    ended = carried_out(resumed, Work("datanode", {}, [], [], "", lambda _: ("never",)))
    assert ended.ending is Ending.LOCKED
    assert lock.locks({"n1": host(lock.look())})["n1"].holder.mark == "another"


def test_a_host_that_does_not_answer_robs_nobody(host: Host, tmp_path: Path) -> None:
    class Silent(OneHost):
        def everywhere(self, script: str, *, among: tuple[str, ...] = ("n1",)) -> dict[str, Answer[Reply]]:
            found = super().everywhere(script, among=among)
            return found if "@@taken" in script or "@@released" in script else {
                name: Answer(None, "no answer") for name in found
            }  # fmt: skip

    def do(running: Running) -> tuple[str, ...]:
        running.begins("n1", "datanode")
        return ("done",)

    running = Running(cast("Living", Silent(host)), begun(tmp_path / "runs"))
    assert carried_out(running, Work("datanode", {}, [], [], "", do)).ending is Ending.DONE
