"""Hosts that join, leave and are away: what is refused and marked, and what the balancer's codes mean."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from ansible.module_utils.lakehouse import preflight_away

from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Host
from lakehouse.remote.operations import Operation
from lakehouse.rolling import balance, capacity, datanodes, departure, lifecycle, marker, offline
from lakehouse.rolling.datanodes import Node
from lakehouse.rolling.facts import Living
from lakehouse.rolling.run import Running
from lakehouse.rolling.steps import Step
from lakehouse.status import questions
from plugins.module_utils.lakehouse import away, hdfs_hosts
from plugins.module_utils.lakehouse.fsck import Block, File
from plugins.module_utils.lakehouse.holder import FILE, SILENT_SECONDS
from tests.unit import local_host

HERE = "tests/inventory"
WAY = f".venv/bin/lakehouse scale-out NODE -i {HERE}"
GIB = 1024**3
BLOCK = (Block("blk_1", 5, ()),)
NAMES = {f"10.0.0.{number}": f"n{number}" for number in range(1, 5)}


def serving(*names: str, remaining: int = 10 * GIB) -> dict[str, Node]:
    return {name: Node(datanodes.SERVES, remaining) for name in names}


def files(*replications: int) -> list[File]:
    return [File(f"/f{number}", 5, wanted, BLOCK) for number, wanted in enumerate(replications)]


def stored(size: int, *hosts: str, wanted: int = 3) -> list[File]:
    """A file of one block, with a replica on each of these hosts."""
    places = tuple(f"{address}:9866" for address, name in NAMES.items() if name in hosts)
    return [File("/f", size, wanted, (Block("blk_1", size, places),))]


# Where a departure could never end


def test_a_host_leaves_where_its_blocks_find_their_places() -> None:
    nodes = serving("n1", "n2", "n3", "n4")
    assert capacity.unplaced(nodes, files(3, 2, 1), "n4", 3, WAY) is None
    assert capacity.cramped(nodes, stored(8 * GIB, "n1", "n2", "n4"), "n4", NAMES, WAY) is None


def test_files_that_want_more_replicas_than_hosts_are_left_are_counted() -> None:
    found = capacity.unplaced(serving("n1", "n2", "n3"), files(3, 2, 3), "n3", 3, WAY)
    assert found is not None
    assert found.fact == "2 files want up to 3 replicas, and 2 DataNodes would be left"
    assert found.next == (
        f"{WAY}, or hdfs_replication: 2 in the inventory and hdfs dfs -setrep -R 2 / on a node"
    )


def test_a_file_without_a_block_wants_nothing_and_a_new_one_does() -> None:
    empty = [File("/empty", 0, 3, ())]
    found = capacity.unplaced(serving("n1", "n2", "n3"), empty, "n3", 3, WAY)
    assert found is not None
    assert found.fact == "new files want 3 replicas, and 2 DataNodes would be left"
    assert capacity.unplaced(serving("n1", "n2", "n3"), empty, "n3", 2, WAY) is None


def test_a_host_that_is_away_is_none_of_those_that_are_left() -> None:
    nodes = serving("n1", "n2", "n3", "n4") | {"n2": Node(datanodes.AWAY, 10 * GIB)}
    assert capacity.unplaced(nodes, files(3), "n4", 3, WAY) is not None


@pytest.mark.parametrize(
    ("wanted", "having", "mib"),
    [
        # A tenth of what is free stays so.
        (2, ("n3",), 1843),
        # What is free where a replica is already is no room for another one.
        (2, ("n2", "n3"), 921),
        # Enough are elsewhere.
        (1, ("n2", "n3"), None),
        (2, ("n1", "n2"), None),
    ],
)
def test_blocks_need_room_where_they_are_not(wanted: int, having: tuple[str, ...], mib: int | None) -> None:
    nodes = serving("n1", "n2", remaining=GIB) | serving("n3")
    found = capacity.cramped(nodes, stored(2 * GIB, *having, wanted=wanted), "n3", NAMES, WAY)
    said = f"2048 MiB are to move, and the other DataNodes can take {mib} MiB of it"
    assert (found.fact if found else None) == (said if mib else None)


class Hdfs:
    """As `Living`: a NameNode that counts these DataNodes as live, and has one file on the second host."""

    def __init__(self, *live: str) -> None:
        self.cluster = placement.read(inventory.load(HERE))
        self.live = live
        self.lacking = 0

    def having(self, _: str) -> tuple[Host, ...]:
        return self.cluster.hosts

    def host(self, name: str) -> Host:
        return next(host for host in self.cluster.hosts if host.name == name)

    def replication(self) -> int:
        return 1

    def bean(self, name: str) -> Answer[dict[str, Any]]:
        if name != "NameNodeInfo":
            return Answer({"LowRedundancyBlocks": self.lacking, "PendingReconstructionBlocks": 0})
        dead = {host.name for host in self.cluster.hosts} - set(self.live)
        left = {f"{name}:9866": {"adminState": datanodes.LEFT} for name in dead}
        live = {f"{name}:9866": row() for name in self.live}
        return Answer({"LiveNodes": json.dumps(live), "DeadNodes": json.dumps(left), "DecomNodes": "{}"})

    def report(self) -> Answer[str]:
        last = self.cluster.hosts[1]
        place = f" [DatanodeInfoWithStorage[{last.address}:9866,DS-1,DISK]]" if last.name in self.live else ""
        return Answer(
            "/last 5 bytes, replicated: replication=1, 1 block(s):  OK\n"
            f"0. BP-1-1:blk_1_1 len=5 Live_repl=1 {place}\n\n"
            "The filesystem under path '/' is HEALTHY"
        )


def test_a_host_whose_datanode_does_not_run_keeps_blocks_that_nobody_else_has() -> None:
    names = [host.name for host in placement.read(inventory.load(HERE)).hosts]
    here = [Step("datanode", "hdfs-datanode", names[1], "")]
    alive, dead = (cast("Living", Hdfs(*live)) for live in (names, names[::2]))
    assert departure.refusal(alive, here, names[1], HERE) is None
    found = departure.refusal(dead, here, names[1], HERE)
    assert found is not None
    assert found.fact.startswith(
        "its DataNode does not run, and 1 block has no replica elsewhere, such as one of /last: "
    )
    assert found.next.startswith(f".venv/bin/lakehouse restart datanode --host {names[1]} -i {HERE}; ")


class Worker:
    """As `Living` and `Running`: a worker whose page gives these answers, one after the other."""

    def __init__(self, *pages: Answer[str], active: bool) -> None:
        self.cluster = placement.read(inventory.load(HERE))
        self.pages, self.active = list(pages), active
        self.living, self.lines = self, list[str]()

    def host(self, name: str) -> Host:
        return next(host for host in self.cluster.hosts if host.name == name)

    def page(self, _: str) -> Answer[str]:
        return self.pages.pop(0)

    def do(self, _: str, script: str, __: float) -> Answer[str]:
        return Answer("") if self.active or "kill" in script else unknown("it did not come to its end")

    def begins(self, host: str, what: str) -> None:
        """Nothing is noted."""

    def say(self, what: str) -> None:
        self.lines.append(what)


@pytest.mark.parametrize(
    ("active", "left", "said"), [(True, 0, ["no answer in 20.0 s", "1 executors have work"]), (False, 2, [])]
)
def test_a_worker_that_is_too_busy_to_tell_is_not_taken_for_idle(
    monkeypatch: pytest.MonkeyPatch, active: bool, left: int, said: list[str]
) -> None:
    monkeypatch.setattr(departure, "_PAUSE_SECONDS", 0.0)
    one, none = (Answer(json.dumps({"executors": work})) for work in (["app"], []))
    worker = Worker(unknown("no answer in 20.0 s"), one, none, active=active)
    step = Step("spark_worker", "spark-worker", worker.cluster.hosts[1].name, "")
    departure._drain(cast("Running", worker), step, 60.0)
    assert len(worker.pages) == left
    assert [line.partition(": ")[2] for line in worker.lines] == said


class Followed:
    """As `Running`: looks at what is left as often as there are numbers of blocks that lack a replica."""

    def __init__(self, hdfs: Hdfs, *lacking: int) -> None:
        self.living, self.hdfs, self.lacking = hdfs, hdfs, lacking
        self.seen: list[str] = []

    def follow(self, _: str, left: Callable[[], str]) -> None:
        for lacking in self.lacking:
            self.hdfs.lacking = lacking
            self.seen.append(left())


def test_a_coordinator_is_alone_beside_workers_elsewhere() -> None:
    living = Hdfs()
    [leader] = [host.name for host in living.cluster.hosts if "trino_coordinator" in host.groups]
    others = {host.name for host in living.cluster.hosts} - {leader}
    assert lifecycle.sole_services(cast("Living", living), [Step("trino", "trino", leader, "")]) == ["trino"]
    for name in others:
        assert lifecycle.sole_services(cast("Living", living), [Step("trino", "trino", name, "")]) == []


def test_the_namenode_starts_before_it_is_told_who_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it leaves its safe mode by the DataNode beside it, perhaps."""
    told: list[str] = []

    class Host(Followed):
        def begins(self, *_: str) -> None:
            """Nothing is noted."""

        def done(self, *_: str) -> None:
            """Nothing is noted."""

        def say(self, *_: str) -> None:
            """Nothing is printed."""

        def wait(self, where: str, *_: object) -> None:
            told.append(f"wait {where}")

        def serves(self, *_: object) -> str:
            """It serves."""
            return ""

        settled = serves

        def bring(self, _: str, operations: Sequence[Operation], __: float) -> Answer[list[str]]:
            told.extend(f"start {operation.arguments['unit']}" for operation in operations)
            return Answer([])

    running = Host(Hdfs())
    running.living = running  # type: ignore[assignment]
    monkeypatch.setattr(lifecycle, "set_hdfs_state", lambda *_: told.append("in hdfs"))
    monkeypatch.setattr(marker, "take", lambda *_: Answer(""))
    here = tuple(Step(name, name, "n1", "") for name in ("namenode", "postgresql", "datanode"))
    lifecycle._serve(here, cast("Running", running), for_good=False)
    started = [one.removeprefix("start ").removesuffix(".service") for one in told]
    assert started[:6] == [
        "namenode",
        "wait namenode on n1",
        "in hdfs",
        "datanode",
        "namenode",
        "wait namenode on n1",
    ]


def test_a_host_that_leaves_makes_no_more_backups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has one of the units that the clock starts, as one that kept the backups before another did."""

    class Told(Followed):
        def begins(self, *_: str) -> None:
            """Nothing is noted."""

        def done(self, *_: str) -> None:
            """Nothing is noted."""

    with local_host.opened(tmp_path / "systemd", monkeypatch) as machine:
        machine.unit("lakehouse-backup.timer", "active")
        machine.unit("lakehouse-backup.service", "activating", "static")
        running = Told(Hdfs())
        running.living = machine.living  # type: ignore[assignment]
        lifecycle.stop_timers(cast("Running", running), local_host.NAME)
        timer, service = "lakehouse-backup.timer", "lakehouse-backup.service"
        assert machine.calls == [f"--quiet disable {timer}", f"stop {timer}", f"stop {service}"]


def test_what_a_stopped_datanode_had_is_copied_before_its_host_has_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offline, "COUNTED_SECONDS", 0.0)
    alpha, beta, *_ = (host.name for host in placement.read(inventory.load(HERE)).hosts)
    running = Followed(Hdfs(alpha), 3, 0)
    departure._moved(cast("Running", running), beta)
    assert running.seen == ["3 blocks lack a replica", ""]


def test_the_host_that_keeps_the_backups_leaves_when_another_one_does() -> None:
    living = Hdfs(*(host.name for host in placement.read(inventory.load(HERE)).hosts))
    [keeper] = [host for host in living.cluster.hosts if questions.backups(host)]
    found = departure.refusal(cast("Living", living), [], keeper.name, HERE)
    assert found is not None
    assert found.fact == "it keeps the backups"
    assert found.next.startswith(f"lakehouse_backup_host: another one in {HERE}, ")
    assert offline.danger(keeper).endswith("comes back with it alone, and the backups are there.")
    assert offline.danger(living.cluster.hosts[1]).endswith("comes back with it alone.")


# What the NameNode says


def row(state: str = datanodes.SERVES, **more: Any) -> dict[str, Any]:
    return {"adminState": state, "remaining": 9, **more}


def test_the_beans_of_the_namenode_are_read_by_host() -> None:
    leaving = {"underReplicatedBlocks": 4, "decommissionOnlyReplicas": 0, "underReplicateInOpenFiles": 1}
    bean = {
        "LiveNodes": json.dumps({"n1:9866": row(), "n2:9866": row(datanodes.GOING[0])}),
        "DeadNodes": json.dumps({"n3:9866": {"adminState": datanodes.LEFT}}),
        "DecomNodes": json.dumps({"n2:9866": leaving}),
    }
    assert datanodes.nodes(bean) == {"n1": Node(datanodes.SERVES, 9), "n2": Node(datanodes.GOING[0], 9)}
    assert datanodes.states(bean)["n3"] == datanodes.LEFT
    said = str(datanodes.pending(bean, "n2"))
    assert said.startswith("4 blocks have too few replicas elsewhere, 1 of an open file")
    with pytest.raises(KeyError):
        datanodes.pending(bean, "n1")


def test_one_that_left_stays_in_the_list_and_a_run_does_not_adopt_it() -> None:
    listed = hdfs_hosts.changed(hdfs_hosts.joined([], ["n1", "n2"]), "n2", hdfs_hosts.DECOMMISSIONED)
    again = hdfs_hosts.joined(hdfs_hosts.read(hdfs_hosts.written(listed)), ["n1", "n2"])
    assert again == [{"hostName": "n1"}, {"hostName": "n2", "adminState": "DECOMMISSIONED"}]


def test_a_balancer_is_ended_by_ctrl_c_and_one_that_was_left_before_another() -> None:
    told: list[str] = []

    class Ends(Hdfs):
        def having(self, _: str) -> tuple[Host, ...]:
            return self.cluster.hosts[:1]

        def as_hdfs(self, command: str) -> str:
            return command

        def do(self, _: str, script: str, __: float) -> Answer[str]:
            told.append(script)
            if "systemd-run" in script:
                raise KeyboardInterrupt
            return Answer("")

        living = property(lambda self: self)

        def begins(self, *_: str) -> None:
            """Nothing is noted."""

        def say(self, *_: str) -> None:
            """Nothing is printed."""

    with pytest.raises(KeyboardInterrupt):
        balance.spread(cast("Running", Ends()), 100)
    limit, moves, ends = told
    assert limit.startswith("hdfs dfsadmin -setBalancerBandwidth ")
    assert moves.startswith(f"{ends}; systemd-run --quiet --collect --wait --pipe --unit=lakehouse-balancer ")
    assert ends == "systemctl stop lakehouse-balancer 2>/dev/null || true"


@pytest.mark.parametrize(("code", "fact"), [(0, "blocks are balanced"), (254, "no block can be moved")])
def test_the_balancer_has_ended_well(code: int, fact: str) -> None:
    assert balance.outcome_of(f"some lines\n@@code {code}") == fact


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("cannot lock\n@@code 255", "another balancer runs: cannot lock"),
        ("@@code 249", "an upgrade of HDFS is not finalized: "),
        ("java is gone\n@@code 127", "the balancer ended with 127: java is gone"),
    ],
)
def test_the_balancer_has_not(said: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        balance.outcome_of(said)


# The mark


def test_a_mark_says_what_it_is_and_the_way_back() -> None:
    left, kept = away.read(away.written(away.LEFT, "r7", 0)), away.written(away.MAINTENANCE, "r8", 0, 7200)
    assert away.told(left) == "no longer of the cluster since 1970-01-01 00:00 UTC (run r7)"
    assert away.way_back(left, "n1") == "recommission n1"
    assert away.told(away.read(kept)) == "in maintenance until 1970-01-01 02:00 UTC (run r8)"
    assert away.way_back(away.read(kept), "n1") == "maintenance n1 --end"
    assert away.read("") == {}


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"state": "asleep"}', '"left"'])
def test_what_is_no_mark_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / away.FILE).write_text(text, encoding="utf-8")
    [found] = preflight_away.check_away(tmp_path, "n1")
    assert found["fact"].startswith(f"{tmp_path / away.FILE}: ")


def test_preflight_refuses_a_host_that_is_away(tmp_path: Path) -> None:
    assert preflight_away.check_away(tmp_path, "n1") == []
    (tmp_path / away.FILE).write_text(away.written(away.LEFT, "r7", 0), encoding="utf-8")
    [found] = preflight_away.check_away(tmp_path, "n1")
    assert (found["check"], found["action"]) == ("host.away", ".venv/bin/lakehouse recommission n1")


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    holder = {"run": "r9", "verb": "restart", "user": "ann", "machine": "ops1"}
    path.write_text(json.dumps(holder), encoding="utf-8")
    return path


def test_a_playbook_waits_for_the_end_of_another_run(tmp_path: Path, lock: Path) -> None:
    [found] = preflight_away.check_lock(tmp_path, "")
    assert found["fact"] == "r9 restart of ann on ops1 changes the cluster"
    # Its own run has it, or its holder seems to be dead, or it was never whole.
    assert preflight_away.check_lock(tmp_path, "r9") == []
    os.utime(lock, (0, time.time() - SILENT_SECONDS - 5))
    assert preflight_away.check_lock(tmp_path, "") == []
    lock.write_text("{", encoding="utf-8")
    assert preflight_away.check_lock(tmp_path, "") == []
    lock.unlink()
    assert preflight_away.check_lock(tmp_path, "") == []


def test_a_host_that_left_is_none_of_the_cluster() -> None:
    cluster = placement.read(inventory.load(HERE))
    left = placement.without(cluster, {"gamma3"})
    assert [host.name for host in left.hosts] == ["alpha1", "beta2"]
    assert [host.name for host in left.running("datanodes")] == ["alpha1", "beta2"]
