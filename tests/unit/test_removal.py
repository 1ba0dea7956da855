"""`lakehouse remove`: what goes from a host, with the real commands in a folder that plays one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.model import services
from lakehouse.rolling import removal
from lakehouse.rolling.removal import Places
from tests.unit import local_host
from tests.unit.local_host import LocalHost

OURS = "# Managed by the lakehouse kit: a change made here is lost at the next run.\n"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A host with Flink, beside a program of a person that starts from its release too."""
    programs = tmp_path / "bin"
    for folder in ("opt/flink/releases/1-a", "etc/flink", "data/flink", "bin", "opt/spark"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in {
        "flink": f"#!/bin/sh\n{OURS}exec {tmp_path}/opt/flink/current/bin\n",
        "mine": f"#!/bin/sh\nexec {tmp_path}/opt/flink/current/bin\n",
        "spark-sql": f"#!/bin/sh\n{OURS}exec {tmp_path}/opt/spark/current/bin\n",
    }.items():
        (programs / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(removal, "_PROGRAMS", str(programs))
    return Places((), (f"{tmp_path}/etc/flink",), (f"{tmp_path}/opt/flink",), f"{tmp_path}/data/flink")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHost]:
    with local_host.opened(tmp_path / "systemd", monkeypatch) as opened:
        yield opened


def test_what_is_of_it_goes_and_its_data_stays(machine: LocalHost, host: Places, tmp_path: Path) -> None:
    remove = removal.removing(host, data=False)
    differing = ["files_with.absent", "files.directory", "files.directory"]
    assert machine.bring(remove, check=True) == machine.bring(remove, check=True) == differing
    assert machine.bring(remove) == differing
    left = sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if "flink" in str(path.name)
    )
    assert left == ["data/flink"]
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == ["mine", "spark-sql"]
    assert machine.bring(remove) == machine.bring(remove, check=True) == []


def test_its_data_goes_where_that_is_asked(machine: LocalHost, host: Places) -> None:
    machine.bring(removal.removing(host, data=False))
    remove = removal.removing(host, data=True)
    assert machine.bring(remove, check=True) == machine.bring(remove) == ["files.directory"]
    assert machine.bring(remove, check=True) == []


def test_units_are_stopped_before_their_files_go(host: Places) -> None:
    names = [each.name for each in removal.removing(replace(host, units=("flink-a", "flink-b")), data=False)]
    assert names[:4] == ["units.state", "units.state", "files.file", "files.file"]
    assert names.index("units.reread") > names.index("files.directory")


def test_only_what_a_cluster_can_do_without_is_removed() -> None:
    known = services.load().removable()
    assert known.keys() >= {"trino", "flink"}
    assert not known.keys() & {
        "hdfs_namenode",
        "hdfs_datanode",
        "postgresql",
        "catalog",
        "hive_metastore",
        "spark",
    }
    assert [row.name for row in known["trino"]] == ["trino"]
