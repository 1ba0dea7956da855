"""The steps that the floor of `make bench` derives from manifests, and the order in which it runs them."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakehouse.dev import floor
from lakehouse.errors import LakehouseError
from lakehouse.model import services
from tests.unit import patience

VARIABLES = {
    "local_nodes_cluster": "lake",
    "lakehouse_config_dir": "/etc/lake",
    "lakehouse_cluster_id": "CID-1",
    "lakehouse_database": {"name": "metastore", "user": "hive", "password": "secret"},
}
JOBMANAGER = {"kind": "http", "url": "http://n1:8083/overview", "path": "taskmanagers", "equals": 1}
SAFE_MODE = {"kind": "http", "url": "http://n1:9870/jmx", "path": "beans.0.Safemode", "equals": ""}
ALIVE = {"kind": "command", "argv": ["psql", "-c", "select 'alive'"], "prints": "alive"}


def unit(name: str, *ready: dict[str, Any], enabled: bool = True) -> dict[str, Any]:
    return {"kind": "unit", "name": name, "enabled": enabled, "ready": ready}


MANIFESTS = {
    "lake-n1": [
        {"kind": "package", "name": "openjdk-21-jre-headless"},
        {"kind": "package", "name": "postgresql-17"},
        {"kind": "file", "path": "/etc/postgresql-common/createcluster.conf"},
        {"kind": "file", "path": "/etc/hadoop/core-site.xml"},
        {"kind": "absent", "path": "/etc/old.conf"},
        {"kind": "release", "path": "/opt/hadoop/releases/3.5.0-aa"},
        {"kind": "release", "path": "/opt/hive/releases/3.1.3-bb"},
        {"kind": "release", "path": "/opt/python-clients/releases/1-cc"},
        {"kind": "sql", "database": "metastore", "port": "5432"},
        unit("postgresql@17-main", ALIVE),
        unit("hdfs-namenode", SAFE_MODE),
        unit("hive-metastore"),
        unit("flink-jobmanager"),
        unit("flink-history", JOBMANAGER | {"unit": "flink-jobmanager"}),
        unit("spark-thrift", enabled=False),
    ],
    "lake-n2": [
        {"kind": "package", "name": "openjdk-21-jre-headless"},
        unit("flink-taskmanager", JOBMANAGER),
    ],
}
UNIT_FILES = {
    "postgresql@17-main": "# /usr/lib/systemd/system/postgresql@.service\n",
    "hdfs-namenode": "# /etc/systemd/system/hdfs-namenode.service\n-cp /opt/hadoop/current/lib/*\n",
    "hive-metastore": "# /etc/systemd/system/hive-metastore.service\n-cp /opt/hive/current/lib/*\n",
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> floor.Steps:
    def run(node: str, script: str, content: str | bytes = "") -> bytes:
        if script == "cat /etc/lake/lakehouse-manifest.json":
            return json.dumps({"items": dict(enumerate(MANIFESTS[node]))}, indent=1).encode()
        if script.startswith("systemctl cat "):
            return UNIT_FILES.get(
                script.removeprefix("systemctl cat "), "# /etc/systemd/system/a.service\n"
            ).encode()
        return content.encode() if isinstance(content, str) else content

    hosts = [SimpleNamespace(name=name, variables=VARIABLES) for name in ("n1", "n2")]
    for name in ("hadoop-3.5.0-aa", "hive-3.1.3-bb", "python_clients-1-cc"):
        (tmp_path / f"{name}.tar").touch()
    monkeypatch.setattr(floor, "_run", run)
    monkeypatch.setattr("lakehouse.dev.floor.inventory.load", lambda _: SimpleNamespace(hosts=hosts))
    monkeypatch.setattr("lakehouse.dev.floor.artifacts.cache_dir", lambda: SimpleNamespace(releases=tmp_path))
    return floor.look("inventory/of-the-test")


class TestSteps:
    """Each as soon as it can be done."""

    def test_a_unit_of_the_kit_needs_files_java_and_the_releases_that_it_names(
        self, steps: floor.Steps
    ) -> None:
        needed = {"lake-n1 files", "lake-n1 java", "lake-n1 /opt/hadoop/releases/3.5.0-aa"}
        assert set(steps["format"][0]) == needed
        assert set(steps["lake-n1 hdfs-namenode"][0]) == {*needed, "format"}

    def test_postgresql_does_not_wait_for_java(self, steps: floor.Steps) -> None:
        assert steps["lake-n1 postgresql@17-main"][0] == ["lake-n1 files"]
        assert steps["databases"][0] == ["lake-n1 postgresql@17-main"]
        assert "-jre" not in steps["lake-n1 packages"][1].args[1]

    def test_releases_are_unpacked_beside_packages_and_those_of_no_unit_last(
        self, steps: floor.Steps
    ) -> None:
        assert steps["lake-n1 /opt/hive/releases/3.1.3-bb"][0] == []
        assert steps["lake-n1 /opt/python-clients/releases/1-cc"][0] == ["lake-n1 java"]

    def test_a_unit_follows_those_of_other_nodes_on_which_it_depends(self, steps: floor.Steps) -> None:
        assert "lake-n1 flink-jobmanager" in steps["lake-n2 flink-taskmanager"][0]
        assert "schema" in steps["lake-n1 hive-metastore"][0]

    def test_only_enabled_units_are_started(self, steps: floor.Steps) -> None:
        assert "lake-n1 spark-thrift" not in steps

    def test_files_of_the_manifest_are_packed_and_the_early_ones_before_packages(
        self, steps: floor.Steps
    ) -> None:
        early, files = (
            steps[f"lake-n1 {step}"][1].args[2].decode().split() for step in ("packages", "files")
        )
        assert early == [*floor.ACCOUNTS, "/etc/postgresql-common/createcluster.conf"]
        assert files[:1] == [floor.HOST_KEY]
        assert "/etc/hadoop/core-site.xml" in files
        assert "/etc/old.conf" not in files

    def test_a_started_unit_answers_anything_and_in_the_end_what_its_probe_expects(
        self, steps: floor.Steps
    ) -> None:
        [reached], command = steps["lake-n1 flink-jobmanager"][1].args
        assert "path" not in reached
        assert command == "docker exec lake-n1 systemctl restart flink-jobmanager"
        assert steps["answers"][1].args[0].count(JOBMANAGER | {"unit": "flink-jobmanager"}) == 1

    def test_commands_of_probes_run_on_their_node(self, steps: floor.Steps) -> None:
        [probe], _ = steps["lake-n1 postgresql@17-main"][1].args
        assert probe["argv"] == ["docker", "exec", "lake-n1", *ALIVE["argv"]]

    def test_in_the_end_all_units_are_active(self, steps: floor.Steps) -> None:
        before, work = steps["answers"]
        assert set(before) == steps.keys() - {"answers"}
        scripts = [probe["argv"][-1] for probe in work.args[0] if "is-active" in str(probe)]
        assert [("postgresql@17-main" in script, "flink-taskmanager" in script) for script in scripts] == [
            (True, False),
            (False, True),
        ]

    def test_the_order_names_units_and_steps_that_there_are(self, steps: floor.Steps) -> None:
        units = {row.unit for row in services.load().services.values()}
        assert floor.BEFORE.keys() <= units | steps.keys()
        assert {name for later in floor.BEFORE.values() for name in later} <= units


class TestRunning:
    """Steps run beside each other, and after those that precede them."""

    def test_a_step_follows_those_that_precede_it_and_runs_beside_the_others(self) -> None:
        done: list[str] = []
        both = threading.Barrier(2, timeout=patience.SECONDS)

        def work(name: str, wait: Callable[[], object] = lambda: None) -> None:
            wait()
            done.append(name)

        floor.carry_out(
            {
                "last": (["left", "right"], partial(work, "last")),
                "left": (["first"], partial(work, "left", both.wait)),
                "right": (["first"], partial(work, "right", both.wait)),
                "first": ([], partial(work, "first")),
            }
        )
        assert done[0] == "first"
        assert set(done[1:3]) == {"left", "right"}
        assert done[3:] == ["last"]

    def test_what_follows_a_failure_is_not_run(self) -> None:
        def fail() -> None:
            raise LakehouseError("no")

        done: list[str] = []
        with pytest.raises(LakehouseError, match="no"):
            floor.carry_out({"left": ([], partial(fail)), "right": (["left"], partial(done.append, "right"))})
        assert not done

    def test_waiting_ends_with_the_problem(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = itertools.chain(["starting", None], itertools.repeat("no DataNode"))
        monkeypatch.setattr("lakehouse.dev.floor.probes.ask", lambda _: next(answers))
        monkeypatch.setattr(floor, "PAUSE_SECONDS", 0.01)
        floor._wait([{}])
        monkeypatch.setattr(
            "lakehouse.dev.floor.time",
            SimpleNamespace(monotonic=itertools.count(0, floor.LIMIT_SECONDS).__next__, sleep=lambda _: None),
        )
        with pytest.raises(LakehouseError, match="no DataNode"):
            floor._wait([{}])
