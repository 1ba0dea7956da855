"""Verbs that change a cluster: the plan, the gate, the journal, the lock and the end."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import pytest

from lakehouse import runs
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement, services
from lakehouse.model.placement import Cluster
from lakehouse.remote import probing
from lakehouse.remote.probing import Reply
from lakehouse.rolling import gate, journal, lock, marker, ready, restart, run, steps
from lakehouse.rolling.facts import Living
from lakehouse.rolling.gate import Facts, Unit
from lakehouse.rolling.result import Ending, RunResult, Stopped
from lakehouse.rolling.run import Plan, Request, Running, Work
from lakehouse.rolling.steps import Step
from lakehouse.shared_options import ChangeOptions
from plugins.module_utils.lakehouse import hdfs_gate
from plugins.module_utils.lakehouse.datanode_lists import DEAD, LIVE, unheard
from plugins.module_utils.lakehouse.hdfs_gate import Blocks
from tests.unit.one_host import HOLDER, Host, OneHost, begun, carried_out

HERE = "tests/inventory"
STEP = Step("datanode", "hdfs-datanode", "n1", "")
RUNS, STOPPED = Unit(active=True, pid=7, invocation="a"), Unit(active=False, pid=0, invocation="a")
WELL = Blocks(safemode="", live=3, placed=3, replication=3, missing=0, lacking=0)
NOTHING: Answer[tuple[str, ...]] = Answer(())


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load(HERE))


def facts(blocks: Blocks = WELL, last: Answer[tuple[str, ...]] = NOTHING, **units: Unit) -> Facts:
    known = {"n1": RUNS, "n2": RUNS, "n3": RUNS} | units
    return Facts({name: Answer(unit) for name, unit in known.items()}, Answer(blocks), last)


def said(found: Facts, step: Step = STEP) -> list[str]:
    return [one.what for one in gate.reasons(step, found)]


# The plan


def test_what_is_in_maintenance_is_restarted_by_its_name_alone(cluster: Cluster) -> None:
    away = replace(cluster, away=frozenset({"gamma3"}))
    assert "gamma3" not in {step.host for step in steps.plan(away, "all")}
    assert [str(step) for step in steps.plan(away, "datanode", "gamma3")] == ["datanode on gamma3"]
    everybody = replace(cluster, away=frozenset(host.name for host in cluster.hosts))
    with pytest.raises(LakehouseError, match="but for alpha1, beta2, gamma3, in maintenance"):
        steps.plan(everybody, "datanode")


def test_what_is_in_maintenance_is_not_started_by_another_verb(cluster: Cluster) -> None:
    away = replace(cluster, away=frozenset({"gamma3"}))
    refused = marker.absent(away, ["alpha1", "gamma3"], "inv")
    assert refused is not None
    assert str(refused.fact) == "gamma3 is in maintenance"
    assert refused.next == ".venv/bin/lakehouse maintenance gamma3 --end -i inv"
    assert marker.absent(away, ["alpha1"], "inv") is None


def test_followers_go_before_the_leader_that_they_report_to() -> None:
    names = [row.name for row in steps.order(services.load().services.values())]
    for row in services.load().services.values():
        if row.leader:
            assert names.index(row.name) < names.index(row.leader)


def test_what_needs_another_service_goes_after_it_as_in_the_catalogue() -> None:
    names = [row.name for row in steps.order(services.load().services.values())]
    wanted = ["namenode", "postgresql", "metastore", "spark_master", "trino", "flink_jobmanager"]
    assert [name for name in names if name in wanted] == wanted


def test_the_coordinator_goes_after_the_workers_of_the_same_service(cluster: Cluster) -> None:
    planned = steps.plan(cluster, "trino")
    assert [step.host for step in planned] == ["alpha1", "gamma3", "beta2"]
    assert [bool(step.noticed) for step in planned] == [False, False, True]


def test_a_host_alone_is_planned_alone(cluster: Cluster) -> None:
    assert {step.host for step in steps.plan(cluster, "all", "beta2")} == {"beta2"}
    assert [str(step) for step in steps.plan(cluster, "datanode", "beta2")] == ["datanode on beta2"]


@pytest.mark.parametrize(
    ("target", "host", "message"),
    [
        ("datanodes", None, "there is no service datanodes (did you mean datanode?)"),
        ("datanode", "beta", "there is no host beta in tests/inventory (did you mean beta2?)"),
        ("namenode", "beta2", "namenode does not run on beta2"),
        ("spark_thrift", None, "spark_thrift does not run in this cluster"),
    ],
)
def test_what_is_not_there_is_one_line_with_what_was_meant(
    cluster: Cluster, target: str, host: str | None, message: str
) -> None:
    with pytest.raises(LakehouseError) as error:
        steps.plan(cluster, target, host)
    assert error.value.message == message
    assert error.value.next_command


def test_a_step_is_the_same_after_it_was_in_a_journal() -> None:
    assert steps.read(json.loads(json.dumps(asdict(STEP)))) == STEP


class Units:
    """As `Living`: what each host says of its unit."""

    def __init__(self, **units: Answer[Unit]) -> None:
        self.said = units

    def units(self, *_: str) -> dict[str, Answer[Unit]]:
        return self.said


def test_a_host_that_was_silent_at_first_is_not_taken_for_restarted() -> None:
    silent, up = Units(n1=unknown("no answer")), Units(n1=Answer(RUNS))
    [step] = restart.with_invocations(cast("Living", silent), [STEP])
    kept = steps.read(json.loads(json.dumps(asdict(step))))
    assert not restart.is_done(cast("Living", up), kept)
    [step] = restart.with_invocations(
        cast("Living", Units(n1=Answer(replace(STOPPED, invocation="")))), [STEP]
    )
    assert restart.is_done(cast("Living", up), step)


# The gate


def test_where_everybody_serves_and_every_block_is_whole_the_gate_is_open() -> None:
    assert said(facts()) == []


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (facts(n2=STOPPED), "datanode on n2 does not run"),
        (facts(replace(WELL, safemode="Safe mode is ON.")), "HDFS is in safe mode: no client can write"),
        (facts(replace(WELL, lacking=3)), "3 blocks lack a replica"),
        (facts(replace(WELL, missing=1)), "1 block is missing already"),
        (
            facts(replace(WELL, live=2)),
            "1 of 3 DataNodes is down already: with this one 2 would be, and at most 1 may be",
        ),
    ],
)
def test_each_danger_shuts_it_for_a_reason_that_force_overrules(found: Facts, reason: str) -> None:
    [why] = gate.reasons(STEP, found)
    assert why.what.startswith(reason)
    assert why.forced


def test_a_block_that_would_have_no_replica_is_never_forced() -> None:
    [why] = gate.reasons(STEP, facts(last=Answer(("/lake/one", "/lake/two"))))
    assert why.what.startswith("2 blocks would have no live replica, such as one of /lake/one; ")
    assert not why.forced


def test_what_nobody_knows_shuts_it_and_is_never_forced() -> None:
    blocks: Answer[Blocks] = unknown("no answer in 5.0 s")
    last: Answer[tuple[str, ...]] = unknown("no answer in 5.0 s")
    for found in (replace(facts(), blocks=blocks), replace(facts(), last=last)):
        [why] = gate.reasons(STEP, found)
        assert why.what.endswith("no answer in 5.0 s")
        assert not why.forced


def test_a_host_that_does_not_answer_is_not_restarted() -> None:
    quiet: Answer[Unit] = unknown("no route")
    found = replace(facts(), units={"n1": quiet})
    assert said(found) == ["n1 does not say how datanode is: no route"]


def test_what_does_not_run_may_be_started_whatever_else_is_wrong() -> None:
    assert said(facts(replace(WELL, lacking=9, live=2), n1=STOPPED)) == []


def test_a_datanode_of_which_the_namenode_does_not_hear_may_be_restarted() -> None:
    """The blocks lack replicas because of it: no client reads from it now."""
    down = replace(WELL, live=2, lacking=23)
    assert said(facts(down)) != []
    assert said(replace(facts(down), last=None, silent=True)) == []


@pytest.mark.parametrize("state", ["maintenance", "left"])
def test_what_was_stopped_on_purpose_is_not_started_and_never_forced(state: str) -> None:
    for unit in (STOPPED, RUNS):
        [why] = gate.reasons(STEP, replace(facts(n1=unit), away=Answer(state)))
        assert why.what == f"n1 is marked as away ({state}): its units are stopped on purpose"
        assert not why.forced


def test_a_mark_that_cannot_be_read_shuts_the_gate() -> None:
    [why] = gate.reasons(STEP, replace(facts(n1=STOPPED), away=unknown("no mark")))
    assert why.what == "n1 does not say whether it is in maintenance: no mark"
    assert not why.forced


def test_a_datanode_that_is_dead_or_hangs_is_unheard_and_one_that_is_new_is_not() -> None:
    live = {"n1:9866": {"lastContact": 2}, "n2:9866": {"lastContact": 15}}
    bean = {LIVE: json.dumps(live), DEAD: json.dumps({"n3:9866": {"lastContact": 700}})}
    assert unheard(bean) == {"n2", "n3"}


def test_the_namenode_may_go_while_a_datanode_is_away_only_if_no_block_lacks_one() -> None:
    step = replace(STEP, service="namenode")
    one = replace(facts(replace(WELL, live=2)), units={"n1": Answer(RUNS)}, last=None)
    assert said(one, step) == []
    assert said(replace(one, blocks=Answer(replace(WELL, lacking=1))), step) == ["1 block lacks a replica"]


@pytest.mark.parametrize(
    ("replication", "datanodes", "allowed"),
    [(3, 3, 1), (2, 3, 1), (1, 1, 1), (3, 10, 1), (5, 10, 3), (5, 6, 3)],
)
def test_so_many_datanodes_may_be_down_at_once(replication: int, datanodes: int, allowed: int) -> None:
    assert hdfs_gate.down(replication, datanodes) == allowed


FSCK = """Connecting to namenode via http://n1:9870/fsck
/lake/safe 10 bytes, replicated: replication=3, 1 block(s):  OK
0. BP-1:blk_1_1 len=10 Live_repl=2  [DatanodeInfoWithStorage[10.0.0.1:9866,DS-1,DISK], DatanodeInfoWithStorage[10.0.0.2:9866,DS-2,DISK]]

/lake/alone 10 bytes, replicated: replication=1, 1 block(s):  OK
0. BP-1:blk_2_1 len=10 Live_repl=1  [DatanodeInfoWithStorage[10.0.0.1:9866,DS-1,DISK]]

/lake/open 10 bytes, replicated: replication=3, 1 block(s), OPENFORWRITE:
0. BP-1:blk_3_1 len=10 Expected_repl=1  [DatanodeInfoWithStorage[10.0.0.1:9866,DS-1,DISK]]

The filesystem under path '/' is HEALTHY
"""  # noqa: E501 -- as the NameNode prints it


def test_the_last_replicas_are_those_on_that_host_alone() -> None:
    assert hdfs_gate.last_replicas(FSCK, "10.0.0.1", back=False) == ("/lake/alone", "/lake/open")
    assert hdfs_gate.last_replicas(FSCK, "10.0.0.2", back=False) == ()


def test_who_writes_to_a_host_alone_waits_for_it_when_it_is_back_at_once() -> None:
    assert hdfs_gate.last_replicas(FSCK, "10.0.0.1", back=True) == ("/lake/alone",)


def test_a_replica_on_a_host_that_is_down_does_not_count() -> None:
    found = hdfs_gate.last_replicas(FSCK, "10.0.0.1", frozenset({"10.0.0.2"}), back=False)
    assert found == ("/lake/safe", "/lake/alone", "/lake/open")


def test_the_name_of_a_file_is_no_replica() -> None:
    name = "/lake/blk_9_1 [DatanodeInfoWithStorage[10.0.0.1:9866,DS-1,DISK]]"
    listed = FSCK.replace("/lake/safe", name)
    assert hdfs_gate.last_replicas(listed, "10.0.0.1", back=False) == ("/lake/alone", "/lake/open")


def test_a_name_with_a_line_break_stops_the_step() -> None:
    forged = FSCK.replace("/lake/alone", "/lake/x\n/lake/alone")
    with pytest.raises(ValueError, match="a line break"):
        hdfs_gate.last_replicas(forged, "10.0.0.1", back=False)


def test_half_a_report_is_none() -> None:
    with pytest.raises(ValueError, match="did not finish"):
        hdfs_gate.last_replicas(FSCK[:400], "10.0.0.1", back=False)


@pytest.mark.parametrize(
    ("service", "place", "name"),
    [
        ("spark_worker", "workers", "worker-20260102030405-{}-7078"),
        ("flink_taskmanager", "taskmanagers", "{}:6122-a1b2c3"),
    ],
)
def test_a_leader_knows_a_host_by_its_whole_name(service: str, place: str, name: str) -> None:
    there = ["node1", "node10", "cpu-node1", "10.0.0.1", "10.0.0.11"]
    text = json.dumps({place: [{"id": name.format(one)} for one in there]})
    host = inventory.Host("node1", "10.0.0.1", frozenset(), {})
    found = ready.members(service, Answer(Reply(text, 0.0, 0.0)), host)
    assert found.value == frozenset({name.format("node1"), name.format("10.0.0.1")})


@pytest.mark.parametrize("service", services.load().services)
def test_every_row_of_the_catalogue_has_a_gate(cluster: Cluster, service: str) -> None:
    row = services.load().services[service]
    hosts = [host for host in cluster.hosts if host.groups & set(row.groups)]
    assert hosts
    assert all([*ready.questions_of(cluster, service, host)] for host in hosts)


def asked(cluster: Cluster, service: str, host: inventory.Host, *, alone: bool = False) -> list[str]:
    """The probes of a service in short: where they go, and what they want."""
    probes = [
        one.probe
        for one in ready.questions_of(cluster, service, host, alone=alone)
        if isinstance(one, probing.Probe)
    ]
    return [f"{probe['url']} {probe.get('path', '')} {probe.get('equals')!r}".strip() for probe in probes]


@pytest.mark.parametrize(("service", "place"), [("spark_master", "settled"), ("spark_worker", "ready")])
def test_who_is_in_maintenance_is_not_waited_for_and_who_is_started_is(
    cluster: Cluster, service: str, place: str
) -> None:
    workers = [host.name for host in cluster.running("spark_workers")]
    [master] = cluster.running("spark_master")
    away = replace(cluster, away=frozenset(workers[:2]))
    host = master if place == "settled" else next(one for one in cluster.hosts if one.name == workers[0])
    questions = getattr(ready, {"settled": "settled", "ready": "questions_of"}[place])
    [wanted] = [
        one.probe
        for one in questions(away, service, host)
        if isinstance(one, probing.Probe) and one.probe.get("path") == "aliveworkers"
    ]
    # A boot starts what is in maintenance: more of them are well, too.
    assert wanted["at_least"] == len(workers) - len(away.away - {host.name})
    assert "equals" not in wanted


def test_trino_is_not_asked_for_a_node_in_maintenance(cluster: Cluster) -> None:
    [away, *others] = [host.name for host in cluster.running("trino_workers")]
    probes = [
        one.probe
        for one in ready.questions_of(
            replace(cluster, away=frozenset({away})), "trino", cluster.running("trino_coordinator")[0]
        )
        if isinstance(one, probing.Probe)
    ]
    [wanted] = [probe for probe in probes if "nodes" in probe]
    assert (wanted["nodes"], wanted["most"]) == (len(others) + 1, len(others) + 2)


def test_a_host_is_asked_at_its_own_port_and_who_leads_it_at_his(cluster: Cluster) -> None:
    first, second = cluster.running("datanodes")[:2]
    ports = second.variables["lakehouse_ports"]
    own, leaders = asked(cluster, "datanode", second)
    assert own.startswith(f"http://{second.address}:{ports['datanode_http']}/jmx")
    assert own.endswith("ActorState 'RUNNING'")
    namenode = cluster.running("namenode")[0]
    assert leaders.startswith(f"http://{namenode.address}:{ports['namenode_http']}/jmx")
    assert leaders.endswith("Safemode ''")
    assert asked(cluster, "datanode", first) != [own, leaders]
    workers = len(cluster.running("spark_workers"))
    assert [one.split()[-1] for one in asked(cluster, "spark_worker", second)] == [str(workers)]


def test_trino_answers_alone_before_its_coordinator_counts_every_node(cluster: Cluster) -> None:
    worker = cluster.running("trino_workers")[0]
    coordinator = cluster.running("trino_coordinator")[0]
    own, counted = asked(cluster, "trino", worker)
    port = worker.variables["lakehouse_ports"]["trino_http"]
    assert own == f"http://{worker.address}:{port}/v1/info starting False"
    assert coordinator.address in counted
    assert asked(cluster, "trino", worker, alone=True) == [own]


# The journal


def fills(path: Path) -> None:
    """Have a file lie on a disk that is full."""
    path.unlink()
    path.symlink_to("/dev/full")


def test_runs_are_numbered_and_readable_by_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    assert [begun(folder).id for _ in range(11)] == [f"r{number}" for number in range(1, 12)]
    assert [one.id for one in journal.runs(folder)][-2:] == ["r10", "r11"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "r1.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_run_tells_what_it_was_to_do_and_how_it_ended(tmp_path: Path) -> None:
    own = begun(tmp_path)
    assert journal.runs(tmp_path)[0].state == journal.RUNNING
    own.write("done", host="n1", what="datanode")
    own.write("ended", ending=6, facts=["at datanode on n2: 3 blocks lack a replica"])
    [run] = journal.runs(tmp_path)
    assert (run.verb, run.target, run.plan, run.arguments["service"]) == (
        "restart", "datanode", ({"host": "n1"},), "datanode",
    )  # fmt: skip
    assert (run.state, run.ended, run.resumable) == ("stopped halfway", Ending.HALFWAY, True)


def ended_process() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_a_killed_run_has_no_end_and_can_be_resumed(tmp_path: Path) -> None:
    own = begun(tmp_path)
    path = tmp_path / "r1.jsonl"
    path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {ended_process()}'))
    own.write("begins", host="n1", what="datanode")
    # The machine went down while it wrote.
    with path.open("a") as stream:
        stream.write('{"event": "do')
    [run] = journal.runs(tmp_path)
    assert (run.state, run.resumable) == (journal.KILLED, True)
    assert journal.find(tmp_path, None, HERE) == run
    own.write("resumed", pid=os.getpid())
    assert journal.runs(tmp_path)[0].state == journal.RUNNING


def test_another_process_of_the_same_number_does_not_keep_a_killed_run_alive(tmp_path: Path) -> None:
    started = journal.process()["started"]
    begun(tmp_path)
    path = tmp_path / "r1.jsonl"
    assert journal.runs(tmp_path)[0].state == journal.RUNNING
    path.write_text(path.read_text().replace(started, started.replace("-", "+")))
    [run] = journal.runs(tmp_path)
    assert (run.state, run.resumable) == (journal.KILLED, True)


def test_what_was_stopped_before_another_run_was_done_is_resumed_by_its_name_alone(tmp_path: Path) -> None:
    begun(tmp_path).write("ended", ending=6, facts=[])
    later = begun(tmp_path)
    later.write(journal.DONE, host="n1", what="datanode")
    later.write("ended", ending=0, facts=[])
    with pytest.raises(LakehouseError) as error:
        journal.find(tmp_path, None, HERE)
    assert error.value.message == "r1 (restart datanode) was stopped before r2 was done"
    assert (error.value.next_command or "").startswith(f".venv/bin/lakehouse resume r1 -i {HERE}")
    assert journal.find(tmp_path, "r1", HERE).id == "r1"


def test_a_line_that_is_none_hides_no_other_run(tmp_path: Path) -> None:
    begun(tmp_path).write("ended", ending=0, facts=[])
    begun(tmp_path).write("ended", ending=6, facts=[])
    with (tmp_path / "r2.jsonl").open("a") as stream:
        stream.write('{"event": "do{"event": "resumed", "at": 1.0, "pid": 1}\n')
    assert [one.state for one in journal.runs(tmp_path)] == ["done", "stopped halfway"]


def test_a_disk_that_takes_no_line_is_one_line(tmp_path: Path) -> None:
    own = begun(tmp_path)
    fills(tmp_path / "r1.jsonl")
    with pytest.raises(LakehouseError) as error:
        own.write("done", host="n1", what="datanode")
    assert error.value.message == f"{tmp_path}/r1.jsonl: No space left on device"
    assert error.value.next_command == f"df -h {tmp_path}"


def test_a_run_that_was_on_its_way_stays_so_when_its_resume_is_refused(tmp_path: Path) -> None:
    refused = begun(tmp_path)
    refused.write("ended", ending=3, facts=["at datanode on n1: 3 blocks lack a replica"])
    stopped = begun(tmp_path)
    stopped.write(journal.BEGINS, host="n1", what="datanode")
    stopped.write("ended", ending=6, facts=[])
    stopped.write("resumed", pid=os.getpid())
    stopped.write("ended", ending=5, facts=["r3 holds n1"])
    assert [one.resumable for one in journal.runs(tmp_path)] == [False, True]


def test_a_resumed_run_is_alive_again_until_its_end(tmp_path: Path) -> None:
    own = begun(tmp_path)
    own.write("ended", ending=130, facts=[])
    own.write("resumed", pid=os.getpid())
    [run] = journal.runs(tmp_path)
    assert (run.state, run.resumable) == (journal.RUNNING, False)
    own.write("ended", ending=0, facts=["done"])
    assert not journal.runs(tmp_path)[0].resumable


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "no interrupted run to resume"),
        ("r9", "there is no run r9 of this cluster on this machine"),
        ("r1", "run r1 (restart datanode) is done"),
    ],
)
def test_what_cannot_be_resumed_is_one_line(tmp_path: Path, name: str | None, message: str) -> None:
    begun(tmp_path).write("ended", ending=0, facts=[])
    with pytest.raises(LakehouseError) as error:
        journal.find(tmp_path, name, HERE)
    assert (error.value.message, error.value.next_command) == (message, f".venv/bin/lakehouse runs -i {HERE}")


def test_the_list_of_runs_ends_with_what_can_be_resumed(tmp_path: Path) -> None:
    begun(tmp_path).write("ended", ending=0, facts=["3 of 3 restarted"])
    begun(tmp_path).write("ended", ending=6, facts=["at datanode on n2"])
    lines = runs.screen("lake", HERE, journal.runs(tmp_path)).splitlines()
    assert [line.split()[0] for line in lines] == ["RUN", "r1", "r2", "runs"]
    assert (
        lines[-1]
        == "runs lake: 2 runs, 1 that can be resumed; next: .venv/bin/lakehouse resume r2 -i tests/inventory"
    )
    document = runs.document("lake", journal.runs(tmp_path))
    assert [(one["run"], one["exit"], one["resumable"]) for one in document["runs"]] == [
        ("r1", 0, False),
        ("r2", 6, True),
    ]


# The lock


def test_one_takes_it_and_the_next_one_is_told_who(host: Host) -> None:
    assert lock.is_taken(host(lock.take(HOLDER)))
    second = host(lock.take(replace(HOLDER, run="r20", mark="xyz")))
    assert not lock.is_taken(second)
    [found] = lock.locks({"n1": second}).values()
    assert found.holder == HOLDER
    assert str(found) == "r17 restart, pid 4121 of ops on ops1 since 00:00:00 UTC"
    assert not found.stale


def test_a_holder_that_is_not_heard_of_is_said_to_be_so_and_keeps_it(host: Host, tmp_path: Path) -> None:
    host(lock.take(HOLDER))
    os.utime(tmp_path / "run.lock", (0, 0))
    [found] = lock.locks({"n1": host(lock.take(replace(HOLDER, mark="xyz")))}).values()
    assert found.stale
    assert ", not heard of for " in str(found)
    host(lock.beat("abc"))
    [found] = lock.locks({"n1": host(lock.look())}).values()
    assert not found.stale


def test_only_its_holder_gives_it_back(host: Host) -> None:
    host(lock.take(HOLDER))
    host(lock.release("xyz"))
    assert lock.locks({"n1": host(lock.look())})
    host(lock.release("abc"))
    assert lock.locks({"n1": host(lock.look())}) == {}
    assert lock.is_taken(host(lock.take(HOLDER)))


def test_nobody_beats_for_a_lock_that_is_gone(host: Host, tmp_path: Path) -> None:
    host(lock.beat("abc"))
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_given_back_during_a_beat_is_not_made_again(host: Host, tmp_path: Path) -> None:
    """No run could take a file that names no holder."""
    host(lock.take(HOLDER))
    slow = f'grep() {{ command grep "$@"; found=$?; rm {tmp_path}/run.lock; return $found; }}'
    host(f"{slow}\n{lock.beat('abc')}")
    assert list(tmp_path.iterdir()) == []


# The run


@pytest.mark.parametrize(
    ("at", "ending", "facts"),
    [
        ("before", Ending.FAILED, 1),
        ("between", Ending.HALFWAY, 1),
        ("elsewhere", Ending.HALFWAY, 1),
        ("after", Ending.DONE, 2),
    ],
)
def test_a_full_disk_of_this_machine_does_not_hide_what_was_changed(
    host: Host, tmp_path: Path, at: str, ending: Ending, facts: int
) -> None:
    folder = tmp_path / "runs"
    own = begun(folder)

    def full(moment: str) -> None:
        if moment == at:
            fills(folder / f"{own.id}.jsonl")

    def do(running: Running) -> tuple[str, ...]:
        full("before")
        running.begins("n1", "datanode")
        full("between")
        running.done("n1", "datanode")
        if at == "elsewhere":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/log")
        full("after")
        return ("1 of 1 restarted",)

    work = Work("datanode", {}, [], [], "", do)
    running = Running(cast("Living", OneHost(host)), own)
    ended = carried_out(running, work, "restart")
    assert ended.ending is ending
    *said, _ = ended.facts
    assert len(said) == facts
    assert said[-1].endswith(": No space left on device")
    assert lock.locks({"n1": host(lock.look())}) == {}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (True, "its lock was broken: r17 restart, pid 4121 of ops on ops1 since "),
        (False, "its lock is gone from 1 of 1 host: "),
    ],
)
def test_a_run_whose_lock_was_broken_begins_nothing_more(
    host: Host, tmp_path: Path, *, other: bool, said: str
) -> None:
    def do(running: Running) -> tuple[str, ...]:
        running.begins("n1", "datanode")
        [mine] = lock.locks({"n1": host(lock.look())}).values()
        host(lock.release(mine.holder.mark))
        if other:
            host(lock.take(HOLDER))
        running.begins("n1", "never")
        return ("never",)

    own = begun(tmp_path / "runs")
    running = Running(cast("Living", OneHost(host)), own)
    work = Work("datanode", {}, [], [], "", do)
    ended = carried_out(running, work, "restart")
    assert (ended.ending, ended.next) == (Ending.HALFWAY, f".venv/bin/lakehouse resume {own.id} -i inv")
    assert ended.facts[0].startswith(said)
    # What another one holds stays his.
    assert bool(lock.locks({"n1": host(lock.look())})) is other
    [told] = journal.runs(tmp_path / "runs")
    assert told.begun_steps == {("n1", "datanode")}


def test_a_run_that_has_its_lock_on_less_than_half_of_the_hosts_has_lost_it(host: Host) -> None:
    """The one who broke it could not reach one host, and has ended."""
    mine, none = host(lock.take(HOLDER)), host("true")
    own = lock.OwnLock(HOLDER.mark, ("n1", "n2", "n3"), 3)
    silent: Answer[Reply] = unknown("no answer")
    mine = host(lock.look())
    assert lock.loss({"n1": mine, "n2": none, "n3": none}, own).startswith(
        "its lock is gone from 2 of 3 hosts: "
    )
    assert lock.loss({"n1": mine, "n2": mine, "n3": none}, own) == ""
    assert lock.loss({"n1": mine, "n2": silent, "n3": none}, own) == ""


def test_what_cannot_be_given_back_does_not_hide_how_a_run_ended(host: Host, tmp_path: Path) -> None:
    class Gone(OneHost):
        def everywhere(self, script: str, *, among: tuple[str, ...] = ("n1",)) -> dict[str, Answer[Reply]]:
            if "@@released" in script:
                raise LakehouseError("pyinfra does not answer any more")
            return super().everywhere(script, among=among)

    def do(_: Running) -> tuple[str, ...]:
        raise KeyboardInterrupt

    running = Running(cast("Living", Gone(host)), begun(tmp_path / "runs"))
    work = Work("datanode", {}, [], [], "", do)
    ended = carried_out(running, work, "restart")
    assert ended.ending is Ending.INTERRUPTED


def resumed(folder: Path) -> journal.Run:
    """A run that was killed after its last step."""
    own = begun(folder)
    path = folder / f"{own.id}.jsonl"
    own.write(journal.LOCKS, mark="left")
    own.write(journal.BEGINS, host="n1", what="datanode")
    own.write(journal.DONE, host="n1", what="datanode")
    path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {ended_process()}'))
    [run] = journal.runs(folder)
    assert run.state == journal.KILLED
    return run


def test_a_run_that_was_killed_after_its_last_step_ends_when_it_is_resumed(
    cluster: Cluster, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    killed = resumed(folder)
    assert lock.is_taken(host(lock.take(replace(HOLDER, run=killed.id, mark="left"))))
    monkeypatch.setattr(run, "folder", lambda _: folder)
    living = cast("Living", OneHost(host, cluster))
    monkeypatch.setattr(marker, "of", lambda _: {})
    work = Work("datanode", {}, [], ["plan"], "Restart 0 units?", lambda _: ("never",), typed="lake")
    options = ChangeOptions("inv", as_json=True)

    def read(_: object = None) -> Plan:
        return run._read(living, lambda *_: work, Request({}, "inv", killed))

    ended = run._result(options, "restart", read(), read, killed)
    assert (ended.ending, ended.facts[0]) == (Ending.DONE, "there was nothing left to do")
    assert not journal.runs(folder)[0].resumable
    assert lock.locks({"n1": host(lock.look())}) == {}


def test_what_a_look_fails_at_on_the_way_is_a_run_that_stopped_halfway(host: Host, tmp_path: Path) -> None:
    def do(running: Running) -> tuple[str, ...]:
        running.begins("n1", "its mark")
        raise Stopped(Ending.FAILED, "the list of DataNodes cannot be read", "site.yml")

    running = Running(cast("Living", OneHost(host)), begun(tmp_path / "runs"))
    work = Work("n1", {}, [], [], "", do)
    ended = carried_out(running, work, "maintenance")
    assert (ended.ending, ended.next) == (Ending.HALFWAY, "site.yml")


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_told_to_end_or_loses_its_terminal_gives_its_lock_back(
    host: Host, tmp_path: Path, ends: signal.Signals
) -> None:
    def do(_: Running) -> tuple[str, ...]:
        signal.raise_signal(ends)
        return ("never",)

    running = Running(cast("Living", OneHost(host)), begun(tmp_path / "runs"))
    work = Work("datanode", {}, [], [], "", do)
    before = signal.signal(ends, lambda *_: None)
    try:
        ended = carried_out(running, work, "restart")
    finally:
        signal.signal(ends, before)
    assert ended.ending is Ending.INTERRUPTED
    assert lock.locks({"n1": host(lock.look())}) == {}


def test_a_run_behind_nohup_outlives_its_terminal(host: Host, tmp_path: Path) -> None:
    def do(_: Running) -> tuple[str, ...]:
        signal.raise_signal(signal.SIGHUP)
        return ("1 of 1 restarted",)

    running = Running(cast("Living", OneHost(host)), begun(tmp_path / "runs"))
    work = Work("datanode", {}, [], [], "", do)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ended = carried_out(running, work, "restart")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ended.ending is Ending.DONE


# The end


def test_line_code_and_document_are_of_one_value() -> None:
    done = RunResult(
        "restart", "datanode", Ending.DONE, ("3 of 3 restarted", "41 s"), "lakehouse status", "r17"
    )
    assert done.last_line == (
        "restart datanode: done; 3 of 3 restarted, 41 s, run r17; next: lakehouse status"
    )
    known = done.json()
    assert (known["exit"], known["outcome"], known["run"], known["findings"]) == (0, "DONE", "r17", [])


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (3, "refused"),
        (4, "not confirmed"),
        (5, "locked"),
        (6, "stopped halfway"),
        (7, "went back"),
        (130, "interrupted"),
    ],
)
def test_each_code_has_its_word(code: int, ending: str) -> None:
    known = RunResult("restart", "all", Ending(code), ("why",), "lakehouse runs")
    assert known.last_line == f"restart all: {ending}; why; next: lakehouse runs"
    assert known.json()["findings"] == [{"what": "why", "next": "lakehouse runs"}]
