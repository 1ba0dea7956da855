"""`lakehouse restart` of the cluster: nothing that was committed is lost, or put at risk."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from lakehouse.rolling import run
from suites.testbed.engines.trino import Trino
from suites.testbed.namenode import NameNode
from suites.testbed.tables import suffix
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.changing import Verb
from tests.cluster.machines import Machines
from tests.cluster.stream import Stream, open_file
from tests.cluster.users import Users, at_work

pytestmark = [pytest.mark.cluster, pytest.mark.drill]

# Of all services, one unit after the other, on three machines.
ALL_SECONDS = 360
# Of a run that is told to end, with the connections that it makes once more.
END_SECONDS = 20
# What each of the two works with.
STORAGE = {"namenode", "datanode", "postgresql", "metastore"}
SPARK, TRINO = STORAGE | {"spark_master", "spark_worker"}, STORAGE | {"trino"}


@pytest.fixture(scope="module")
def users(cluster: Inventory, machines: Machines, trino: Trino) -> Iterator[Users]:
    with at_work(machines[cluster.group("clients")[0].name], trino) as there:
        yield there


def unforeseen(stream: Stream, services: set[str], cluster: Inventory, name: str) -> list[str]:
    """Faults that came while a run restarted none of these services of which its plan says that work fails.

    Hosts and this machine have the same time.
    """
    path = run.folder(placement.read(cluster)) / f"{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    noticed = {(step["host"], step["service"]): step["noticed"] for step in lines[0]["plan"]}
    began, ended = (
        {(line["host"], line["what"]): line["at"] for line in lines if line["event"] == event}
        for event in ("begins", "done")
    )
    assert began.keys() == ended.keys() == noticed.keys()
    found = []
    for fault, (since, until) in zip(stream.faults, stream.failed, strict=True):
        away = [step for step in began if began[step] < until and since < ended[step]]
        if not any(service in services and "fail" in noticed[host, service] for host, service in away):
            found.append(f"{fault} (meanwhile: {away})")
    return found


@pytest.mark.longdrill
def test_a_rolling_restart_of_everything_loses_no_commit(
    verb: Verb,
    cluster: Inventory,
    users: Users,
    namenode: NameNode,
    record_property: Callable[[str, object], None],
) -> None:
    """Whose work fails, and at which step, says the plan: docs/operations/restart.md."""
    users.empty()
    with users.writing() as written, users.asking() as asked:
        done = verb.run("restart", "all", "--yes")
    print(done.stdout, done.stderr, f"commits of Spark: {written}", f"queries of Trino: {asked}", sep="\n")  # noqa: T201 -- a failure is judged by it
    assert done.returncode == 0, done
    assert "restart all: done; " in done.stdout.splitlines()[-1]
    users.assert_whole(written)
    assert asked.answered, asked
    last = verb.json("runs")["runs"][-1]
    counted = f"commits of Spark: {written.counted}; queries of Trino: {asked.counted}"
    record_property("note", f"restarted in {last['seconds']:.0f} s; {counted}")
    assert (last["verb"], last["target"]) == ("restart", "all"), last
    assert last["seconds"] <= ALL_SECONDS
    assert unforeseen(written, SPARK, cluster, last["run"]) == []
    assert unforeseen(asked, TRINO, cluster, last["run"]) == []
    changing.healed(namenode)


@pytest.mark.longdrill
def test_one_service_goes_host_by_host_and_has_new_processes(
    verb: Verb, cluster: Inventory, machines: Machines, users: Users, namenode: NameNode
) -> None:
    """As the runbook does it, while a program on the last host holds a file open.

    It goes on without each DataNode but the one beside it, which at the end has the only replica.
    """
    last = machines[cluster.group("datanodes")[-1].name]
    before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    users.empty()
    with open_file(last, namenode), users.writing() as written:
        done = [verb.run(*words) for words in changing.runbook("restart")]
    # A string, since pytest would cut the middle out of what the verbs said.
    assert [one.returncode for one in done] == [0, 0, 0], "".join(one.stdout + one.stderr for one in done)
    print(done[1].stderr, written, sep="\n")  # noqa: T201 -- what docs/guarantees.md says
    after = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    assert [name for name in before if before[name] == after[name]] == []
    # A DataNode that is restarted is waited for by who writes to it.
    assert written.faults == []
    users.assert_whole(written)


def test_it_is_refused_while_another_datanode_is_stopped_and_changes_nothing(
    verb: Verb, cluster: Inventory, machines: Machines, namenode: NameNode
) -> None:
    victim = changing.follower(cluster)
    before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    with changing.stopped(machines[victim.name], "hdfs-datanode"):
        done = verb.run("restart", "datanode", "--yes", "--wait", "2")
    assert done.returncode == 3, done
    *_, last = done.stdout.splitlines()
    assert last.startswith("restart datanode: refused; at datanode on "), last
    assert f"datanode on {victim.name} does not run" in last
    after = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    assert [name for name in before if before[name] != after[name]] == [victim.name]
    changing.healed(namenode)


@pytest.mark.longdrill
def test_a_second_run_is_refused_and_a_killed_one_is_resumed(
    verb: Verb, cluster: Inventory, machines: Machines
) -> None:
    before = changing.starts(cluster, machines, "trino", "trino_workers")
    with verb.started("restart", "trino", "--yes") as first:
        run = changing.line_with(" answers after ", first).split()[0]
        second = verb.run("restart", "spark_history", "--yes")
        first.send_signal(signal.SIGKILL)
    assert second.returncode == 5, second
    assert f"{run} restart, pid {first.pid} of " in second.stdout.splitlines()[-1], second

    listed = verb.run("runs")
    assert f"lakehouse resume {run} " in listed.stdout.splitlines()[-1], listed
    done = verb.run("resume", run, "--yes", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit"], document["outcome"], document["run"]) == (0, 0, "DONE", run), (
        done
    )
    assert " were done, " in document["facts"][0], document
    after = changing.starts(cluster, machines, "trino", "trino_workers")
    assert [name for name in before if before[name] == after[name]] == []


@pytest.mark.longdrill
def test_a_run_that_a_gate_stops_on_its_way_goes_on_where_it_was(
    verb: Verb, cluster: Inventory, machines: Machines, namenode: NameNode
) -> None:
    victim = changing.follower(cluster)
    with verb.started("restart", "datanode", "--yes", "--wait", "2") as process:
        run = changing.line_with(": restarts", process).split()[0]
        # It looks at the others again when the first one is back: by then this one is away.
        process.send_signal(signal.SIGSTOP)
        with changing.stopped(machines[victim.name], "hdfs-datanode"):
            process.send_signal(signal.SIGCONT)
            out, _ = process.communicate(timeout=changing.SECONDS)
    assert process.returncode == 6, out
    assert "restart datanode: stopped halfway; at datanode on " in out.splitlines()[-1]
    before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    shown, listed, planning, _, going_on = changing.runbook("runs", r18=run)
    assert f"lakehouse resume {run} " in verb.run(*shown).stdout.splitlines()[-1]
    assert json.loads(verb.run(*listed).stdout)["runs"][-1]["run"] == run
    planned = verb.run(*planning)
    assert (planned.returncode, "nothing was changed" in planned.stdout.splitlines()[-1]) == (0, True), (
        planned
    )
    assert changing.starts(cluster, machines, "hdfs-datanode", "datanodes") == before
    done = verb.run(*going_on)
    assert done.returncode == 0, done
    changing.healed(namenode)


@pytest.mark.longdrill
def test_blocks_that_never_get_their_replicas_hold_it_up_until_it_is_forced(
    verb: Verb, cluster: Inventory, machines: Machines, namenode: NameNode
) -> None:
    folder, datanodes = f"/{suffix()}", cluster.group("datanodes")
    user = str(cluster.hosts[0].variables["lakehouse_users"]["hdfs"])
    address_of = {host.name: host.address for host in cluster.hosts}.__getitem__
    before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    try:
        namenode.create(f"{folder}/file", user, address_of, body=iter([b"1"]))
        namenode.replicate(f"{folder}/file", len(datanodes) + 1)
        wait_for("a block lacks one", namenode.lacking, seconds=30)
        refused = verb.run("restart", "datanode", "--yes", "--wait", "2")
        assert changing.starts(cluster, machines, "hdfs-datanode", "datanodes") == before
        forced = verb.run("restart", "datanode", "--yes", "--force")
    finally:
        namenode.remove(folder)
    assert refused.returncode == 3, refused
    assert "1 block lacks a replica" in refused.stdout.splitlines()[-1], refused
    assert forced.returncode == 0, forced
    after = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    assert [name for name in before if before[name] == after[name]] == []
    changing.healed(namenode)


@pytest.mark.longdrill
def test_ctrl_c_in_a_step_that_lasts_gives_the_lock_back_at_once(verb: Verb, cluster: Inventory) -> None:
    """A worker of Trino drains for longer than a run may take to end."""
    [worker, *_] = [host.name for host in cluster.group("trino_workers")]
    with verb.started("restart", "trino", "--host", worker, "--yes") as process:
        changing.line_with(f"trino on {worker}: restarts", process)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=changing.SECONDS)
        took = time.monotonic() - began
    assert process.returncode == 130, out
    assert took < END_SECONDS
    run = re.search(r"lakehouse resume (r\d+)", out)
    assert run, out
    # Another verb would be refused while the lock is there.
    [going_on] = [words for words in changing.runbook("runs") if words == ["resume", "--yes"]]
    done = verb.run(*going_on)
    assert done.returncode == 0, done


def test_a_name_that_nobody_has_is_one_line_and_begins_no_run(verb: Verb) -> None:
    for words, said in (
        (("restart", "datanodes"), "error: there is no service datanodes (did you mean datanode?)"),
        (("restart", "datanode", "--host", "nobody"), "error: there is no host nobody in "),
        (("resume", "r0"), "error: there is no run r0 "),
    ):
        done = verb.run(*words)
        assert (done.returncode, done.stdout) == (64, ""), done
        assert done.stderr.startswith(said), done
        assert len(done.stderr.splitlines()) == 1


def test_without_an_answer_nothing_is_changed(verb: Verb, cluster: Inventory, machines: Machines) -> None:
    before = changing.starts(cluster, machines, "hdfs-datanode", "datanodes")
    asked, planned = verb.run("restart", "datanode"), verb.run("restart", "datanode", "--dry-run")
    assert (asked.returncode, planned.returncode) == (4, 0)
    assert asked.stdout.splitlines()[:-1] == planned.stdout.splitlines()[:-1]
    assert changing.starts(cluster, machines, "hdfs-datanode", "datanodes") == before
