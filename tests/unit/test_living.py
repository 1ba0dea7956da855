"""What a host is told: a script has done its work only where each line of it has."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from lakehouse.maybe import Answer
from lakehouse.model import inventory, placement
from lakehouse.remote.probing import Reply, Session, Shell
from lakehouse.rolling import balance, datanodes, facts, marker
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Stopped
from lakehouse.rolling.run import Running
from lakehouse.upgrade import hdfs
from plugins.module_utils.lakehouse import away, hdfs_hosts

# In which a script of a test has ended.
LIMIT_SECONDS = 60.0


class Here:
    """As `Session`: every host is this machine, with programs of the test before its own."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def ask(self, questions: Sequence[Shell], seconds: float) -> dict[str, Answer[Reply]]:
        environment = {"PATH": f"{self.programs}:/usr/bin:/bin"}
        return {
            one.name: Answer(Reply(self.said(one.script, environment, seconds), 0.0, 0.0))
            for one in questions
        }

    def said(self, script: str, environment: dict[str, str], seconds: float) -> str:
        return subprocess.run(
            ["sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            # A balancer may take longer than a selector can wait.
            timeout=min(seconds, LIMIT_SECONDS),
            env=environment,
        ).stdout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setattr(facts, "as_root", str)
    programs = tmp_path / "bin"
    programs.mkdir()
    return Here(programs)


@pytest.fixture
def living(here: Here) -> Living:
    return Living(placement.read(inventory.load("tests/inventory")), cast("Session", here))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo well", "well"),
        ("set -e; true\necho well", "well"),
        ("[ ! -d / ] || exit 0\nfalse", ""),
        ("echo ill; false", None),
        ("set -e; false; echo further", None),
        ("set -e\nfor one in a b; do false || false; done\necho further", None),
        ("exit 3", None),
    ],
)
def test_a_script_that_ends_at_its_first_failure_has_failed(
    living: Living, script: str, said: str | None
) -> None:
    assert living.do("node1", script, 5.0).value == said


def test_the_list_of_datanodes_stays_where_the_disk_takes_no_other(
    living: Living, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "datanodes.json"
    known.write_text("as it was", encoding="utf-8")
    monkeypatch.setattr(datanodes, "_FILE", str(known))
    here.program("runuser", "exit 0")
    here.program("sync", "echo 'No space left on device'; exit 1")
    wanted = hdfs_hosts.changed([], "node1", hdfs_hosts.NORMAL)
    with pytest.raises(Stopped, match="No space left on device"):
        datanodes.write(living, wanted)
    assert known.read_text(encoding="utf-8") == "as it was"


def test_a_maintenance_is_noted_where_its_host_is_not(
    living: Living, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be off before another verb asks it."""
    notes = tmp_path / "lakehouse-left.json"
    monkeypatch.setattr(marker, "notes_file", lambda _: str(notes))
    monkeypatch.setattr(marker, "away_file", lambda host: str(tmp_path / f"{host.name}.json"))
    for state, known in ((away.MAINTENANCE, {"gamma3"}), (away.LEFT, set[str]())):
        assert marker.put(living, "gamma3", away.written(state, "r7", 0.0)).known
        assert away.notes(notes.read_text(encoding="utf-8")).keys() == known


def test_notes_that_cannot_be_read_are_not_written_over(
    living: Living, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "lakehouse-left.json"
    monkeypatch.setattr(marker, "notes_file", lambda _: str(notes))
    assert marker.note(living, "n4", away.written(away.LEFT, "r7", 0.0)).known
    before = notes.read_text(encoding="utf-8")
    here.program("cat", "echo 'Input/output error' >&2; exit 1")
    assert "Input/output error" in marker.note(living, "n5", away.written(away.LEFT, "r8", 0.0)).why
    assert notes.read_text(encoding="utf-8") == before


class Said:
    """As `Running`, without a reader of what it does."""

    def __init__(self, living: Living) -> None:
        self.living = living
        self.finished: list[str] = []

    def begins(self, host: str, what: str) -> None:
        """Nothing is noted."""

    def say(self, what: str) -> None:
        """Nothing is printed."""

    def done(self, host: str, what: str) -> None:
        self.finished.append(f"{what} on {host}")


def test_an_upgrade_that_hdfs_does_not_finalize_keeps_the_note_of_its_way_back(
    living: Living, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "hdfs-namenode.service.d" / "rolling-upgrade.conf"
    note.parent.mkdir()
    note.write_text("[Unit]\nX-Before=3.4.2-a\n", encoding="utf-8")
    monkeypatch.setattr(hdfs, "_DROP_IN", str(note))
    found = hdfs.PendingUpgrade(0.0, "3.4.2-a", frozenset())
    monkeypatch.setattr(hdfs, "pending_upgrade", lambda _: Answer(found))
    here.program("systemctl", "exit 0")
    here.program("runuser", "echo 'Name node is in safe mode'; exit 255")
    running, [host] = Said(living), living.having("namenode")
    with pytest.raises(Stopped, match=r"HDFS is not finalized: .*Name node is in safe mode"):
        hdfs.finish(cast("Running", running))
    assert note.exists()
    assert running.finished == []
    here.program("runuser", "exit 0")
    hdfs.finish(cast("Running", running))
    assert not note.exists()
    assert running.finished == [f"finalize on {host.name}"]


def test_datanodes_have_their_bandwidth_before_the_balancer_moves_a_block(
    living: Living, here: Here, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    here.program("runuser", f'shift 3; echo "$*" >> {told}')
    here.program("systemd-run", 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"')
    running = Said(living)
    assert balance.spread(cast("Running", running), bandwidth=20) == "blocks are balanced"
    limit, moves = told.read_text(encoding="utf-8").splitlines()
    assert limit == f"hdfs dfsadmin -setBalancerBandwidth {20 * 1024**2}"
    assert moves.startswith("hdfs balancer -threshold 10 ")


def test_nothing_is_moved_where_datanodes_do_not_take_their_bandwidth(living: Living, here: Here) -> None:
    here.program("runuser", "echo 'Access denied'; exit 255")
    running = Said(living)
    with pytest.raises(Stopped, match=r"the DataNodes do not take their bandwidth: .*Access denied"):
        balance.spread(cast("Running", running), bandwidth=20)
    assert running.finished == []
