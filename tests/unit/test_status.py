"""`lakehouse status`: what is wrong with which model, the screen, the last line and the exit code of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.commands import status as command
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement, services
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote.probing import Reply
from lakehouse.run import ROOT
from lakehouse.status import judge, questions, reading, screen
from lakehouse.status.model import Database, Disk, Engine, Hdfs, Machine, Memory, Placed, Status, Tables, Unit

GIB = 1024**3
NOW = 1_800_000_000.0
SILENT = "no answer in 3.1 s"
HDFS = Hdfs(
    capacity=100 * GIB, used=GIB, remaining=90 * GIB, live=2, dead=0, stale=0, failed_volumes=0,
    blocks=40, missing=0, corrupt=0, low=0, safemode="", living=("n1", "n2"),
)  # fmt: skip


def machine(name: str) -> Machine:
    return Machine(
        name=name,
        address=f"10.0.0.{name[-1]}",
        answer=Answer(True),
        uptime=Answer(7200.0),
        memory=Answer(Memory(8 * GIB, 4 * GIB)),
        disks=Answer((Disk("/", 100 * GIB, 50 * GIB),)),
        offset=Answer(0.0),
        releases=Answer({"hadoop": "3.5.0", "hive": "3.1.3", "spark": "4.1.4"}),
    )


def placed(service: str, host: str, release: str, *, needed: bool = False) -> Placed:
    unit = Unit("loaded", "active", "running", 42, 0, NOW - 300)
    return Placed(service, f"{service}-unit", host, release, needed, Answer(unit))


def healthy() -> Status:
    return Status(
        cluster="lake",
        inventory="inventory/mine",
        profile="core",
        at=NOW,
        machines=(machine("n1"), machine("n2")),
        services=(
            placed("namenode", "n1", "hadoop", needed=True),
            placed("datanode", "n1", "hadoop"),
            placed("datanode", "n2", "hadoop"),
            placed("postgresql", "n1", "postgresql", needed=True),
            placed("metastore", "n1", "hive", needed=True),
            placed("spark_master", "n1", "spark"),
        ),
        datanodes=2,
        hdfs=Answer(HDFS),
        metastore=Answer(True),
        database=Answer(Database("17.6", (Tables("iceberg", 3, NOW - 7200),))),
        engines={"spark": Answer(Engine("spark", 2, 2, {"cores": 4}))},
        verified=Answer(None),
        clock_limit=1.0,
    )


def with_unit(status: Status, service: str, host: str, state: Answer[Unit]) -> Status:
    services = (
        replace(each, state=state) if (each.service, each.host) == (service, host) else each
        for each in status.services
    )
    return replace(status, services=tuple(services))


def stopped(status: Status, service: str, host: str) -> Status:
    return with_unit(status, service, host, Answer(Unit("loaded", "inactive", "dead", 0, 0, None)))


def silent(status: Status, name: str) -> Status:
    nothing: Answer[Any] = unknown(SILENT)
    machines = tuple(
        Machine(each.name, each.address, nothing, nothing, nothing, nothing, nothing, nothing)
        if each.name == name
        else each
        for each in status.machines
    )
    services = tuple(replace(each, state=nothing) if each.host == name else each for each in status.services)
    return replace(status, machines=machines, services=services)


def ending(status: Status) -> Result:
    return screen.result(status, 1.23)


class TestJudge:
    """Which findings a model has."""

    def test_a_healthy_cluster_has_none(self) -> None:
        assert judge.findings(healthy()) == ()
        assert ending(healthy()).outcome is Outcome.OK

    def test_a_stopped_service_of_many_degrades_and_is_started_by_its_command(self) -> None:
        [found] = judge.findings(stopped(healthy(), "datanode", "n2"))
        assert (found.code, found.outcome) == ("unit.stopped", Outcome.DEGRADED)
        assert (found.where, found.fact) == ("datanode on n2", "stopped (inactive/dead)")
        assert found.next == ".venv/bin/ansible-playbook -i inventory/mine playbooks/site.yml"

    def test_a_service_that_has_ended_by_itself_is_named_with_its_journal(self) -> None:
        failed = Answer(Unit("loaded", "failed", "failed", 0, 0, None))
        [found] = judge.findings(with_unit(healthy(), "datanode", "n2", failed))
        assert (found.code, found.where) == ("unit.failed", "datanode on n2")
        assert "journalctl -u datanode-unit" in found.next

    def test_a_service_that_the_next_boot_does_not_start_is_named(self) -> None:
        disabled = Answer(Unit("loaded", "active", "running", 42, 0, NOW - 300, enabled=False))
        [found] = judge.findings(with_unit(healthy(), "datanode", "n2", disabled))
        assert (found.code, found.where) == ("unit.enabled", "datanode on n2")
        assert found.next.endswith("playbooks/site.yml")

    def test_a_dead_datanode_is_named_with_what_revives_it(self) -> None:
        dead = replace(healthy(), hdfs=Answer(replace(HDFS, live=1, living=("n1",))))
        [found] = judge.findings(dead)
        assert (found.code, found.where, found.fact) == ("hdfs.datanodes", "n2", "1 of 2 DataNodes are live")
        assert found.next == ".venv/bin/lakehouse restart datanode --host n2 -i inventory/mine"
        assert ending(stopped(dead, "datanode", "n2")).findings[-1].next.endswith("playbooks/site.yml")

    def test_a_safe_mode_of_a_person_is_left_as_the_superuser(self) -> None:
        by_hand = replace(HDFS, safemode="Safe mode is ON. It was turned on manually. Use ...")
        [found] = judge.findings(replace(healthy(), superuser="h", hdfs=Answer(by_hand)))
        assert found.next.endswith("n1 -b -a 'runuser -u h -- hdfs dfsadmin -safemode leave'")

    @pytest.mark.parametrize(
        ("change", "code", "command"),
        [
            ({"unformatted": Answer(("/nn",))}, "hdfs.image", "restore -i"),
            ({"database": unknown('FATAL: database "m" does not exist')}, "database.lost", "restore -i"),
            (
                {"database": unknown("FATAL: sorry, too many clients already")},
                "database.connections",
                "restart postgresql --host n1 -i",
            ),
        ],
    )
    def test_what_is_lost_or_used_up_is_a_finding_of_its_own(
        self, change: dict[str, Any], code: str, command: str
    ) -> None:
        [found] = judge.findings(replace(healthy(), **change))
        assert (found.code, found.next) == (code, f".venv/bin/lakehouse {command} inventory/mine")

    @pytest.mark.parametrize("service", ["namenode", "postgresql", "metastore"])
    def test_without_a_service_that_all_need_it_is_down(self, service: str) -> None:
        assert ending(stopped(healthy(), service, "n1")).outcome is Outcome.DOWN

    def test_a_silent_host_is_one_finding_and_its_services_are_unknown(self) -> None:
        status = silent(healthy(), "n2")
        [found] = judge.findings(status)
        assert (found.code, found.where, found.fact) == ("host.silent", "n2", f"unknown: {SILENT}")
        assert ending(status).outcome is Outcome.DEGRADED
        assert (status.answered, status.running) == (1, 5)

    def test_a_host_that_answers_all_but_its_units_is_not_well(self) -> None:
        [found] = judge.findings(with_unit(healthy(), "datanode", "n2", unknown("systemctl: not found")))
        assert (found.code, found.fact) == ("unit.unknown", "unknown: systemctl: not found")

    def test_a_namenode_that_says_nothing_is_down_even_if_its_unit_runs(self) -> None:
        found = ending(replace(healthy(), hdfs=unknown(SILENT)))
        assert (found.outcome, found.worst[0].code) == (Outcome.DOWN, "hdfs.silent")

    def test_a_metastore_that_says_nothing_is_down(self) -> None:
        assert ending(replace(healthy(), metastore=unknown(SILENT))).outcome is Outcome.DOWN

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"live": 1}, "hdfs.datanodes"),
            ({"stale": 1}, "hdfs.stale"),
            ({"safemode": "Safe mode is ON."}, "hdfs.safemode"),
            ({"missing": 1}, "hdfs.missing"),
            ({"corrupt": 1}, "hdfs.corrupt"),
            ({"low": 1}, "hdfs.replicas"),
            ({"failed_volumes": 1}, "hdfs.volumes"),
            ({"remaining": 4 * GIB}, "hdfs.capacity"),
            ({"upgrade": NOW - 7200}, "hdfs.upgrade"),
        ],
    )
    def test_what_the_namenode_counts(self, change: dict[str, Any], code: str) -> None:
        [found] = judge.findings(replace(healthy(), hdfs=Answer(replace(HDFS, **change))))
        assert (found.code, found.outcome) == (code, Outcome.DEGRADED)

    def test_without_a_datanode_it_is_down(self) -> None:
        assert ending(replace(healthy(), hdfs=Answer(replace(HDFS, live=0)))).outcome is Outcome.DOWN

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"offset": Answer(-1.5)}, "host.clock"),
            ({"memory": Answer(Memory(100, 4))}, "host.memory"),
            ({"disks": Answer((Disk("/data", 100, 4),))}, "host.disk"),
            ({"disks": unknown("df: /data: Stale file handle")}, "host.disks"),
        ],
    )
    def test_what_a_machine_lacks(self, change: dict[str, Any], code: str) -> None:
        status = healthy()
        found = judge.findings(
            replace(status, machines=(replace(status.machines[0], **change), status.machines[1]))
        )
        assert [(each.code, each.where) for each in found] == [(code, "n1")]

    def test_workers_that_are_missing_and_an_engine_that_is_silent(self) -> None:
        few = replace(healthy(), engines={"spark": Answer(Engine("spark", 1, 2, {}))})
        assert [found.code for found in judge.findings(few)] == ["spark.workers"]
        none = replace(healthy(), engines={"spark": unknown(SILENT)})
        assert [found.code for found in judge.findings(none)] == ["spark.silent"]
        assert ending(none).outcome is Outcome.DEGRADED

    def test_two_versions_of_one_component_are_named_with_their_hosts(self) -> None:
        status = healthy()
        other = replace(status.machines[1], releases=Answer({"hadoop": "3.4.3"}))
        [found] = judge.findings(replace(status, machines=(status.machines[0], other)))
        assert (found.code, found.fact) == ("versions.differ", "3.5.0 on n1; 3.4.3 on n2")


class TestScreen:
    """What a person and a program see."""

    def test_the_last_line_the_code_and_the_json_say_the_same(self) -> None:
        for status in (healthy(), stopped(healthy(), "datanode", "n2"), stopped(healthy(), "namenode", "n1")):
            found = ending(status)
            assert found.last_line.startswith(f"status lake: {found.outcome.name}; ")
            assert found.last_line.endswith(f"; next: {found.next}")
            said = found.json()
            assert (said["outcome"], said["exit"]) == (found.outcome.name, int(found.outcome))
            assert said["next"] == found.next
            assert screen.screen(status, found).splitlines()[-1] == found.last_line

    def test_the_gravest_finding_says_what_is_next(self) -> None:
        findings = (
            Finding("a.b", Outcome.DEGRADED, "n1", "slow", "look"),
            Finding("a.c", Outcome.DOWN, "n2", "gone", "run"),
        )
        found = Result("status", "lake", findings, ("f",), {}, "smoke")
        assert (found.next, found.outcome) == ("run", Outcome.DOWN)
        assert Result("status", "lake", (), ("f",), {}, "smoke").next == "smoke"

    def test_a_service_shows_how_many_run_and_who_does_not(self) -> None:
        status = stopped(healthy(), "datanode", "n2")
        [row] = [
            line
            for line in screen.screen(status, ending(status)).splitlines()
            if line.startswith("datanode ")
        ]
        assert row.split() == ["datanode", "1", "of", "2", "5", "min", "3.5.0", "n2", "stopped"]

    def test_what_is_unknown_is_never_shown_as_running_or_as_zero(self) -> None:
        status = silent(healthy(), "n2")
        text = screen.screen(status, ending(status))
        assert "1 of 2 hosts answered, 5 of 6 services run" in text
        assert "n2 unknown" in text
        [row] = [line for line in text.splitlines() if line.startswith("n2 ")]
        assert row.split() == ["n2", "10.0.0.2", *["unknown"] * 4]

    def test_programs_get_a_document_with_every_host(self) -> None:
        said = json.loads(json.dumps(ending(silent(healthy(), "n2")).json()))
        assert said["schema"] == 1
        assert said["hosts"].keys() == {"n1", "n2"}
        assert (said["hosts"]["n2"]["answered"], said["hosts"]["n2"]["why"]) == (False, SILENT)
        assert said["hosts"]["n2"]["services"]["datanode"]["state"] == "unknown"
        assert said["cluster"]["hdfs"]["value"]["blocks"] == 40

    @pytest.mark.parametrize(
        ("seconds", "text"), [(-1, "0 s"), (59, "59 s"), (60, "1 min"), (7199, "1 h"), (200_000, "2 d")]
    )
    def test_ages_are_in_their_largest_unit(self, seconds: float, text: str) -> None:
        assert screen.age(seconds) == text


class TestReading:
    """From what hosts and services say to the model."""

    def test_a_part_that_failed_is_unknown_for_its_last_words(self) -> None:
        text = "\n".join((
            "@@lakehouse began", "1.5", "", "@@lakehouse = 0", "",
            "@@lakehouse disks", "df: one", "df: /data: gone", "", "@@lakehouse = 1", "",
            "@@lakehouse memory", "MemTotal",
        ))  # fmt: skip
        parts = questions.parts(Answer(Reply(text, NOW, NOW)))
        assert parts["began"].value == "1.5\n\n"
        assert parts["disks"] == unknown("df: /data: gone")
        assert "memory" not in parts

    @pytest.mark.parametrize(
        ("load", "active", "word"),
        [
            ("loaded", "active", "running"),
            ("loaded", "inactive", "stopped"),
            ("loaded", "failed", "failed"),
            ("loaded", "activating", "starting"),
            ("not-found", "inactive", "absent"),
        ],
    )
    def test_the_state_of_a_unit_is_a_word(self, load: str, active: str, word: str) -> None:
        assert Unit(load, active, "any", 0, 0, None).word == word

    def test_the_blocks_of_systemctl_are_units(self) -> None:
        text = "MainPID=0\nId=a.service\n\nMainPID=7\nId=b.service\nSubState=x=y\n"
        assert reading.units(text) == [
            {"MainPID": "0", "Id": "a.service"},
            {"MainPID": "7", "Id": "b.service", "SubState": "x=y"},
        ]

    def test_the_words_of_a_failure_are_not_its_advice(self) -> None:
        text = "@@lakehouse database\npsql: error: no socket\n\tIs the server running?\n\n@@lakehouse = 2"
        assert questions.parts(Answer(Reply(text, NOW, NOW)))["database"] == unknown("psql: error: no socket")

    @pytest.mark.parametrize(
        ("began", "ended", "offset"),
        [(10.1, 10.2, 0.0), (9.0, 9.2, -1.0), (13.0, 13.1, pytest.approx(2.1)), (10.0, 11.0, 0.0)],
    )
    def test_a_clock_is_wrong_only_beyond_what_the_journey_explains(
        self, began: float, ended: float, offset: float
    ) -> None:
        assert reading.offset(Answer(Reply("", 10.0, 11.0)), began, Answer(str(ended))) == offset

    def test_folders_of_one_file_system_are_one_disk(self) -> None:
        text = "head\n100 60 / /\n100 60 / /srv\n50 49 /data /data\n"
        assert reading.disks(text, ["/", "/srv", "/data"]) == (Disk("/", 100, 60), Disk("/data", 50, 49))
        with pytest.raises(ValueError, match="df does not show /data"):
            reading.disks("head\n1 1 / /\n1 1 / /srv\n", ["/", "/srv", "/data"])

    def test_the_version_is_what_current_leads_to(self) -> None:
        text = (
            "/opt/hadoop/current releases/3.5.0-1137f5b40d6f\n/opt/trino/current releases/476-d94b9735d685\n"
        )
        assert reading.releases(text, "/opt") == {"hadoop": "3.5.0", "trino": "476"}

    def test_tables_are_counted_by_format_with_the_last_commit_where_it_is_known(self) -> None:
        found = reading.tables("version|17.6 (Debian 17.6-1)|\niceberg|9|1795339840981\ndelta|7|\n")
        assert found == Database("17.6", (Tables("delta", 7, None), Tables("iceberg", 9, 1795339840.981)))

    def test_an_answer_that_nobody_understands_is_unknown(self) -> None:
        read = Answer("not a number").then(int)
        assert not read.known
        assert read.why.startswith("the answer cannot be read: ValueError")

    def test_a_report_of_another_cluster_is_none(self, tmp_path: Path) -> None:
        assert reading.verified(tmp_path, "lake") == Answer(None)
        summary = {
            "result": "passed", "generated": "2026-11-22T06:41:44+00:00",
            "cluster": {"name": "other"}, "tests": {"counts": {"passed": 3}},
        }  # fmt: skip
        (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
        assert reading.verified(tmp_path, "lake") == Answer(None)
        found = reading.verified(tmp_path, "other").value
        assert found is not None
        assert (found.result, found.passed) == ("passed", 3)
        (tmp_path / "summary.json").write_text("{", encoding="utf-8")
        assert not reading.verified(tmp_path, "other").known


class TestPlacement:
    """Who is asked for what."""

    def test_the_small_profile_asks_no_engine_that_it_leaves_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = ROOT / "inventory" / "three-node"
        monkeypatch.setenv("LAKEHOUSE_PROFILE", "full")
        everything = {one.name for one in questions.questions(placement.read(inventory.load(path)))}
        monkeypatch.setenv("LAKEHOUSE_PROFILE", "core")
        small = {one.name for one in questions.questions(placement.read(inventory.load(path)))}
        assert everything - small == {"trino", "trino_nodes", "trino_queries", "flink"}

    def test_no_secret_is_looked_up(self) -> None:
        # Its password is in a vault that is not there: an evaluation of it fails.
        cluster = placement.read(inventory.load(ROOT / "inventory" / "three-node"))
        with pytest.raises(LakehouseError, match="vault_metastore_password"):
            cluster.variable("lakehouse_database")
        assert any("-d metastore" in str(one) for one in questions.questions(cluster))

    def test_what_all_need_stores_or_catalogues_on_one_host(self) -> None:
        cluster = placement.read(inventory.load(ROOT / "inventory" / "three-node"))
        needed = {row.name for rows in cluster.services.values() for row in rows if placement.needed(row)}
        assert needed == {"namenode", "postgresql", "metastore"}

    def test_a_unit_is_asked_for_by_its_whole_name(self) -> None:
        cluster = placement.read(inventory.load(ROOT / "inventory" / "three-node"))
        names = {placement.unit(row) for rows in cluster.services.values() for row in rows}
        assert "postgresql@17-main" in names
        assert not [name for name in names if set(name) & set("*{}")]

    def test_a_stack_of_docker_compose_has_no_hosts(self) -> None:
        with pytest.raises(LakehouseError, match="has no hosts to log in to"):
            placement.read(inventory.load(ROOT / "inventory" / "compose"))


def test_it_ends_within_its_promise() -> None:
    assert command.LIMIT_SECONDS <= 5


@pytest.mark.parametrize(("service", "folder"), [("namenode", "hadoop"), ("catalog_past", "catalog")])
def test_a_service_runs_from_its_release_or_from_the_folder_of_its_role(service: str, folder: str) -> None:
    read = reading._placed(services.load().services[service], "alpha1", unknown("silent"))
    assert read.release == folder
