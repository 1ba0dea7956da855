"""`lakehouse remove`: what goes from a host, with the real commands in a folder that plays one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.model import services
from lakehouse.rolling import removal
from lakehouse.rolling.removal import Places

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


def run(script: str) -> str:
    quiet = "systemctl() { :; }\n"
    done = subprocess.run(["sh", "-c", f"{quiet}{script}"], capture_output=True, text=True, check=True)
    return done.stdout


def test_what_is_of_it_goes_and_its_data_stays(host: Places, tmp_path: Path) -> None:
    assert run(removal.find_script(host, data=False)).split() == [*host.folders, *host.releases]
    for _ in range(2):
        run(removal.remove_script(host, data=False))
        left = sorted(
            str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if "flink" in str(path.name)
        )
        assert left == ["data/flink"]
        assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == ["mine", "spark-sql"]
    assert run(removal.find_script(host, data=False)) == ""


def test_its_data_goes_where_that_is_asked(host: Places) -> None:
    run(removal.remove_script(host, data=False))
    assert run(removal.find_script(host, data=True)).split() == [host.data]
    run(removal.remove_script(host, data=True))
    assert run(removal.find_script(host, data=True)) == ""


def test_units_are_stopped_before_their_files_go(host: Places) -> None:
    lines = removal.remove_script(replace(host, units=("flink-a", "flink-b")), data=False).splitlines()
    first = next(number for number, line in enumerate(lines) if "rm -rf" in line)
    assert [line.split()[-1] for line in lines if "disable" in line] == ["flink-a.service", "flink-b.service"]
    assert not any("disable" in line for line in lines[first:])


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
