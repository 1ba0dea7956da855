"""What the floor of `make bench` takes of a node, and in which order it puts it on another one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from lakehouse.dev.floor import imprint, probing, steps
from lakehouse.dev.floor.steps import Step
from lakehouse.dev.floor.taking import NodeSnapshot
from lakehouse.errors import LakehouseError
from lakehouse.model import services
from tests.unit import patience

LISTS = """/etc
/etc/systemd/system
/etc/java-21-openjdk/net.properties
/etc/postgresql-common/pg.conf
/usr/local
"""
VERIFIED = "missing     /usr/share/doc\n??5?????? c /etc/postgresql-common/pg.conf\n"
PACKAGED = imprint.packaged(LISTS, VERIFIED)
CONFIGURED = [
    "/etc/hadoop/core-site.xml",
    "/etc/passwd",
    "/etc/postgresql-common/pg.conf",
    "/etc/systemd/system/hdfs-datanode.service",
    "/etc/systemd/system/multi-user.target.wants/hdfs-datanode.service",
    "/usr/local/bin/hdfs",
    "/srv/soft/hadoop/current",
    "/srv/soft/hadoop/releases",
    "/srv/soft/hadoop/releases/3.5.0-abc/conf",
    "/srv/soft/catalog/module/names.py",
    "/srv/conf/hive/hive-site.xml",
]
OF_OTHERS = [
    "/etc",
    "/etc/java-21-openjdk/net.properties",
    "/etc/passwd-",
    "/etc/machine-id",
    "/etc/hosts",
    "/etc/ssl/certs/java/cacerts",
    "/root/.ansible/tmp",
    "/usr/lib/jvm/java-21-openjdk-amd64/lib/server/classes.jsa",
    "/srv/soft/hadoop/releases/.lock",
    "/srv/soft/hadoop/releases/3.5.0-abc",
    "/srv/soft/hadoop/releases/3.5.0-abc/lib/hadoop.jar",
    "/srv/soft/hadoop/releases/3.5.0-abc/conf/of-the-archive.xml",
    "/var/lib/dpkg/status",
    "/var/log/journal/1/system.journal",
]
FOLDERS = ["/srv/data", "/srv/data/hdfs", "/srv/data/hdfs/name", "/srv/data/spark/work"]
DATA = [
    "/srv/data/hdfs/name/current/VERSION",
    "/srv/data/hdfs/name2",
    "/srv/data/spark/work/app-1",
    "/root/.ssh/authorized_keys",
    "/var/lib/dpkg/status",
]
UNIT = """
[Service]
ExecStart=/bin/java -cp /etc/hadoop:/srv/soft/hadoop/current/lib/* DataNode
ReadWritePaths=/srv/data/spark/work
"""


class TestImprint:
    """What is the kit's among all that has changed on a node."""

    def test_files_of_the_kit_are_told_from_those_of_packages_and_releases(self) -> None:
        changed = [path for path in [*CONFIGURED, *OF_OTHERS] if path not in PACKAGED]
        assert imprint.kept(changed, "/srv/soft", "/srv/conf") == CONFIGURED

    def test_a_packages_file_that_was_changed_is_the_kits(self) -> None:
        assert "/etc/postgresql-common/pg.conf" not in PACKAGED
        assert "/etc/java-21-openjdk/net.properties" in PACKAGED

    def test_of_data_only_named_folders_are_taken(self) -> None:
        text = f"{UNIT}<value>file:///srv/data/hdfs/name</value>"
        assert imprint.rooms([*FOLDERS, *DATA], text) == FOLDERS

    def test_accounts_and_the_place_of_a_database_precede_packages(self) -> None:
        place = "/etc/postgresql-common/createcluster.conf"
        found = [path for path in [*CONFIGURED, place] if imprint.precedes_packages(path)]
        assert found == ["/etc/passwd", place]

    def test_a_release_is_a_known_name_in_its_folder(self) -> None:
        changed = [*OF_OTHERS, "/srv/soft/spark/releases/4.1-unknown"]
        assert imprint.releases(changed, "/srv/soft", {"3.5.0-abc"}) == {"/srv/soft/hadoop": "3.5.0-abc"}

    def test_a_unit_is_one_with_a_file_or_a_drop_in_of_the_kit(self) -> None:
        drop_in = "/etc/systemd/system/postgresql@17-main.service.d/lakehouse.conf"
        timer = "/etc/systemd/system/lakehouse-backup.timer"
        found = {"hdfs-datanode.service", "postgresql@17-main.service", "lakehouse-backup.timer"}
        assert imprint.units([*CONFIGURED, drop_in, timer]) == found


class TestState:
    """What is true of a node."""

    SHOWN = """
unit hdfs-datanode.service
unit user@0.service
socket 127.0.0.1:5432
socket [::ffff:10.0.0.1]:9870
socket 10.0.0.1:40123
socket *:7337
socket 0.0.0.0:9083
"""

    def test_it_is_units_of_the_kit_and_its_ports(self) -> None:
        state = imprint.state(self.SHOWN, {"hdfs-datanode.service"}, {5432, 9870, 7337, 9083})
        assert state == {
            "hdfs-datanode.service is active",
            "127.0.0.1:5432 listens",
            "10.0.0.1:9870 listens",
            "0.0.0.0:7337 listens",
            "0.0.0.0:9083 listens",
        }
        assert imprint.sockets(state, "10.0.0.1") == [
            ("10.0.0.1", 7337),
            ("10.0.0.1", 9083),
            ("10.0.0.1", 9870),
        ]


def taken() -> NodeSnapshot:
    unit = "/etc/systemd/system/hdfs-datanode.service"
    drop_in = "/etc/systemd/system/postgresql@17-main.service.d/lakehouse.conf"
    folders = ("/srv/soft/hadoop/releases/3.5.0-abc", "/srv/soft/spark/releases/4.1.4-def")
    return NodeSnapshot(
        packages=frozenset(),
        before=b"",
        files=b"",
        hosts=b"",
        texts=MappingProxyType({unit: UNIT, drop_in: "[Service]"}),
        releases=dict.fromkeys(folders, Path("an.tar")),
        units=frozenset({"hdfs-datanode.service", "hdfs-checkpoint.service"}),
        state=frozenset({"hdfs-datanode.service is active", "10.0.0.1:9866 listens"}),
        places=(("datanode_data", "10.0.0.1", 9866),),
    )


class TestSteps:
    """Each as soon as it can be done."""

    def test_a_unit_needs_files_packages_and_the_releases_that_it_names(self) -> None:
        found = steps.behind("n1", taken(), "hdfs-datanode.service")
        assert found == ("n1: files", "n1: packages", "n1: /srv/soft/hadoop/releases/3.5.0-abc")

    def test_a_unit_of_a_nodes_own_package_does_not_wait_for_the_others(self) -> None:
        assert steps.behind("n1", taken(), "postgresql@17-main.service") == ("n1: files",)

    def test_only_what_was_active_is_started(self) -> None:
        assert steps.running(taken()) == ["hdfs-datanode.service"]

    def test_less_than_there_was_is_said(self) -> None:
        lost = steps.lost("n1", taken(), frozenset({"10.0.0.1:9866 listens", "10.0.0.1:1 listens"}))
        assert lost == "n1: not so any more: hdfs-datanode.service is active"
        assert steps.lost("n1", taken(), taken().state | {"10.0.0.1:1 listens"}) is None

    def test_a_step_follows_those_it_comes_after_and_runs_beside_the_others(self) -> None:
        done: list[str] = []
        both = threading.Barrier(2, timeout=patience.SECONDS)

        def work(name: str, wait: Callable[[], object] = lambda: None) -> Callable[[], None]:
            def turn() -> None:
                wait()
                done.append(name)

            return turn

        steps.carry_out(
            {
                "last": Step(("one", "other"), work("last")),
                "one": Step(("first",), work("one", both.wait)),
                "other": Step(("first",), work("other", both.wait)),
                "first": Step((), work("first")),
            }
        )
        assert done[0] == "first"
        assert set(done[1:3]) == {"one", "other"}
        assert done[3:] == ["last"]

    def test_what_comes_after_a_failure_is_not_done(self) -> None:
        def fail() -> None:
            raise LakehouseError("no")

        done: list[str] = []
        with pytest.raises(LakehouseError, match="no"):
            steps.carry_out({"one": Step((), fail), "two": Step(("one",), lambda: done.append("two"))})
        assert not done

    def test_the_order_names_units_and_steps_that_there_are(self) -> None:
        known = {f"{row.unit}.service" for row in services.load().services.values()}
        waited_for = {name for names in steps.AFTER.values() for name in names}
        assert steps.AFTER.keys() <= known
        assert waited_for <= known | {steps.FORMAT, steps.DATABASES, steps.CLOSED, steps.FOLDERS}

    def test_a_unit_has_the_ports_of_its_row(self) -> None:
        assert steps.own_ports("postgresql@17-main.service") == {"postgresql"}
        assert steps.own_ports("hdfs-checkpoint.timer") == set()


class TestAsking:
    """What was answered must be answered again."""

    def test_every_service_that_is_on_is_asked_as_the_catalogue_says(self) -> None:
        rows = services.load().services.values()
        # Off unless switched on: that they listen must do, as it does for the database, which others ask.
        silent = {"postgresql", "spark_thrift", "spark_connect"}
        asked = {
            name: list(probing.probes_of([(name, "h", 1)]))
            for row in rows
            for name in {one.port for one in row.ready}
        }
        assert {name for name, probes in asked.items() if not probes} == silent

    def test_a_port_has_the_questions_of_its_service(self) -> None:
        places = [("metastore", "h", 1), ("spark_shuffle", "h", 2), ("flink_rest", "h", 3)]
        thrift, http = probing.probes_of(places)
        assert thrift == {"kind": "thrift", "host": "h", "port": 1, "call": "get_all_databases"}
        assert http == {"kind": "http", "url": "http://h:3/overview", "path": "taskmanagers"}

    def test_the_namenode_is_complete_with_every_datanode(self) -> None:
        found = [probe["path"] for probe in probing.probes_of([("namenode_http", "h", 1)])]
        assert found == ["beans.0.State", probing.SAFE_MODE, "beans.0.NumLiveDataNodes"]

    def test_waiting_ends_with_what_is_still_wrong(self) -> None:
        answers = iter(["starting", None])
        probing.await_right(lambda: next(answers), seconds=10)
        with pytest.raises(LakehouseError, match="the floor is not complete after 0 s: no DataNode"):
            probing.await_right(lambda: "no DataNode", seconds=0)
