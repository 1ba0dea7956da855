"""`site.yml` and `lakehouse restart` decide alike whether a DataNode may be restarted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement, readiness, services
from lakehouse.model.placement import Cluster
from lakehouse.remote.probing import Http, Question, Reply, Session
from lakehouse.rolling import gate
from lakehouse.rolling.facts import Living
from lakehouse.rolling.steps import Step
from plugins.module_utils.lakehouse import hdfs_gate, probes
from plugins.module_utils.lakehouse.datanode_lists import DEAD, LIVE

HOST, OTHERS = "beta2", ("alpha1", "gamma3")
ROW = services.load().services["datanode"]
SILENCE = "Connection refused"
SAFE_MODE = "HDFS is in safe mode: no client can write, and nothing is copied"
WELL = {"NumLiveDataNodes": 3, "LowRedundancyBlocks": 0, "PendingReconstructionBlocks": 0}
UNIT = "Id=hdfs-datanode.service\nActiveState=active\nMainPID=7\nInvocationID=a\n"


@dataclass(frozen=True)
class State:
    """What the NameNode answers, and what shuts the gate of the DataNode on HOST then.

    Replicas are hosts by file; of one that is being written the name begins with `open`.
    """

    shut: tuple[str, ...] = ()
    counters: Mapping[str, Any] = field(default_factory=dict)
    safemode: str = ""
    missing: int = 0
    silent: Mapping[str, int] = field(default_factory=dict)
    dead: tuple[str, ...] = ()
    replicas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answers: bool = True
    reports: bool = True


def last(*files: str) -> str:
    what = "1 block" if len(files) == 1 else f"{len(files)} blocks"
    return (
        f"{what} would have no live replica, such as one of {files[0]}; such files need two replicas"
        " (hdfs dfs -setrep 2), or their writer has to end"
    )


STATES = {
    "every block is whole": State(replicas={"/lake/a": (HOST, "alpha1")}),
    "safe mode": State((SAFE_MODE,), safemode="Safe mode is ON."),
    "a block is missing": State(("1 block is missing already",), missing=1),
    "blocks lack a replica": State(("3 blocks lack a replica",), {"LowRedundancyBlocks": 3}),
    "a block is being copied": State(("1 block lacks a replica",), {"PendingReconstructionBlocks": 1}),
    "another DataNode is dead": State(
        ("1 of 3 DataNodes is down already: with this one 2 would be, and at most 1 may be",),
        {"NumLiveDataNodes": 2},
        dead=("gamma3",),
    ),
    "the last replica is here": State(
        (last("/lake/a"),), replicas={"/lake/a": (HOST,), "/lake/b": (HOST, "alpha1")}
    ),
    "the other replica is on a DataNode that hangs": State(
        (last("/lake/a", "/lake/b"),),
        silent={"gamma3": 20},
        replicas={"/lake/a": (HOST, "gamma3"), "/lake/b": (HOST,), "/lake/c": (HOST, "alpha1")},
    ),
    "a client writes to this DataNode alone": State(replicas={"/open/a": (HOST,)}),
    "nothing hears of this DataNode": State(
        (),
        {"NumLiveDataNodes": 2, "LowRedundancyBlocks": 9},
        dead=(HOST,),
        replicas={"/lake/a": (HOST,)},
    ),
    "this DataNode hangs in safe mode": State(safemode="Safe mode is ON.", silent={HOST: 15}),
    "all at once": State(
        (
            SAFE_MODE,
            "2 blocks are missing already",
            "4 blocks lack a replica",
            "2 of 3 DataNodes are down already: with this one 3 would be, and at most 1 may be",
            last("/lake/a"),
        ),
        {"NumLiveDataNodes": 1, "LowRedundancyBlocks": 4},
        "Safe mode is ON.",
        2,
        dead=OTHERS,
        replicas={"/lake/a": (HOST, *OTHERS)},
    ),
    "the NameNode does not answer": State(
        (
            f"the NameNode does not count its blocks: {SILENCE}",
            f"where the replicas are is unknown: {SILENCE}",
        ),
        answers=False,
        reports=False,
    ),
    "the NameNode reports no files": State((f"where the replicas are is unknown: {SILENCE}",), reports=False),
}
each_state = pytest.mark.parametrize("state", STATES.values(), ids=STATES)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


def addresses(cluster: Cluster) -> dict[str, str]:
    return {host.name: host.address for host in cluster.running("datanodes")}


def report(state: State, known: Mapping[str, str]) -> str:
    """A report of all files as the NameNode prints it."""
    lines = ["Connecting to namenode via http://n1:9870/fsck"]
    for number, (path, hosts) in enumerate(state.replicas.items()):
        places = ", ".join(f"DatanodeInfoWithStorage[{known[host]}:9866,DS-1,DISK]" for host in hosts)
        written = path.startswith("/open")
        count = f"{'Expected_repl' if written else 'Live_repl'}={len(hosts)}"
        end = "OPENFORWRITE:" if written else " OK"
        lines += [
            f"{path} 10 bytes, replicated: replication=3, 1 block(s), {end}",
            f"0. BP-1:blk_{number}_1 len=10 {count}  [{places}]",
            "",
        ]
    return "\n".join([*lines, "The filesystem under path '/' is HEALTHY", ""])


def page(state: State, known: Mapping[str, str], url: str) -> str:
    """Answer as the NameNode; OSError where it does not."""
    if not (state.reports if "/fsck?" in url else state.answers):
        raise OSError(SILENCE)
    if "/fsck?" in url:
        return report(state, known)
    live = {name: {"lastContact": state.silent.get(name, 1)} for name in known if name not in state.dead}
    bean = (
        {
            "Safemode": state.safemode,
            "NumberOfMissingBlocks": state.missing,
            LIVE: json.dumps({f"{name}:9866": node for name, node in live.items()}),
            DEAD: json.dumps({f"{name}:9866": {"lastContact": 700} for name in state.dead}),
        }
        if url.endswith("NameNodeInfo")
        else {**WELL, **state.counters}
    )
    return json.dumps({"beans": [bean]})


class Asked:
    """As `Session`: the NameNode of a state, and hosts on which every unit is active."""

    def __init__(self, state: State, known: Mapping[str, str]) -> None:
        self.state, self.known = state, known

    def ask(self, questions: Iterable[Question], _: float) -> dict[str, Answer[Reply]]:
        return {question.name: self.answer(question) for question in questions}

    def answer(self, question: Question) -> Answer[Reply]:
        if isinstance(question, Http):
            try:
                return Answer(Reply(page(self.state, self.known, question.url), 0.0, 0.0))
            except OSError as error:
                return unknown(str(error))
        return Answer(Reply(UNIT if question.name.startswith("unit ") else "", 0.0, 0.0))


def of_restart(state: State, cluster: Cluster, host: str = HOST, *, back: bool = True) -> tuple[str, ...]:
    """What `lakehouse restart` says that shuts the gate."""
    living = Living(cluster, cast("Session", Asked(state, addresses(cluster))))
    step = Step("datanode", "hdfs-datanode", host, "")
    return tuple(reason.what for reason in gate.reasons(step, living.facts(step, back=back)))


def of_site(state: State, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, name: str = HOST) -> str | None:
    """What the module that `site.yml` runs on the host says that shuts the gate."""

    def fetch(url: str, **_: object) -> bytes:
        return page(state, addresses(cluster), url).encode()

    monkeypatch.setattr(hdfs_gate, "fetch", fetch)
    [host] = [host for host in cluster.running("datanodes") if host.name == name]
    [probe] = readiness.gate(cluster, ROW, host)
    return probes.ask(probe)


@each_state
def test_both_give_the_same_reasons(state: State, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_restart(state, cluster) == state.shut
    assert of_site(state, cluster, monkeypatch) == ("; ".join(state.shut) or None)


def test_a_report_that_is_not_whole_shuts_both(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "report", lambda *_: "/lake/a 10 bytes, replicated: replication=3, OK")
    [reason] = of_restart(State(), cluster)
    shut = of_site(State(), cluster, monkeypatch) or ""
    for said in (reason, shut):
        assert said.startswith("where the replicas are is unknown: ")
        assert "fsck did not finish" in said


def test_the_only_datanode_restarts_though_no_other_has_a_replica(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the NameNode does: nothing is lost, and it comes back. It does not leave for good."""
    [namenode] = cluster.running("namenode")
    alone = placement.without(cluster, addresses(cluster).keys() - {namenode.name})
    state = State(counters={"NumLiveDataNodes": 1}, replicas={"/lake/a": (namenode.name,)})
    assert of_site(state, alone, monkeypatch, namenode.name) is None
    assert of_restart(state, alone, namenode.name) == ()
    assert of_restart(state, alone, namenode.name, back=False) == (last("/lake/a"),)


def test_a_gate_is_asked_at_the_namenode_in_the_name_of_its_superuser(cluster: Cluster) -> None:
    [host] = [host for host in cluster.running("datanodes") if host.name == HOST]
    [probe] = readiness.gate(cluster, ROW, host)
    [namenode] = cluster.running("namenode")
    ports = host.variables["lakehouse_ports"]
    assert probe == {
        "kind": "hdfs_gate",
        "gate": "replicas",
        "url": f"http://{namenode.address}:{ports['namenode_http']}",
        "user": host.variables["lakehouse_users"]["hdfs"],
        "host": HOST,
        "datanodes": addresses(cluster),
        "replication": 3,
    }
    assert list(readiness.gate(cluster, services.load().services["metastore"], host)) == []
