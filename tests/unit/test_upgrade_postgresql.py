"""`lakehouse upgrade postgresql`: which version is meant, and what forbids it."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.model import inventory, placement
from lakehouse.model.inventory import Host
from lakehouse.rolling.facts import Living
from lakehouse.rolling.gate import Unit
from lakehouse.rolling.run import Request
from lakehouse.status.model import LastGood
from lakehouse.upgrade import postgresql
from lakehouse.upgrade.postgresql import Packages

OLD, NEW = "17.11-0+deb13u1", "17.12-0+deb13u1"
NAMES = ("libpq5", "postgresql-17", "postgresql-client-17")
HOUR = 3600.0
TOLD = f"""\
package postgresql-17 {OLD}
package libpq5 {OLD}
package postgresql-client-17 {OLD}
package libecpg6 17.9-1
candidate {NEW}
known {NEW}
known {OLD}
known {OLD}
"""


def test_packages_of_one_source_and_version_change_together() -> None:
    assert postgresql.parse_packages("postgresql-17", TOLD) == Packages(NAMES, OLD, NEW, (NEW, OLD))


def test_a_bundle_is_not_taken_for_the_mirrors_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_BUNDLE", "/media/usb/bundle.tar")
    with pytest.raises(LakehouseError, match="LAKEHOUSE_BUNDLE is set"):
        postgresql.prepare(cast("Living", None), Request({"to": None, "force": False}, "inv"))


def test_a_server_of_another_major_version_is_not_found() -> None:
    with pytest.raises(ValueError, match="postgresql-18 is not installed"):
        postgresql.parse_packages("postgresql-18", TOLD)


@pytest.mark.parametrize(
    ("to", "version", "said"),
    [
        (None, NEW, None),
        ("17.12", NEW, None),
        ("17.11", OLD, None),
        (NEW, NEW, None),
        ("17.1", OLD, "no source has PostgreSQL 17.1 for this host"),
        ("18", OLD, "postgresql 17 -> 18: another major version has other data files"),
        ("18.1", OLD, "postgresql 17 -> 18.1: another major version has other data files"),
    ],
)
def test_which_version_is_meant(to: str | None, version: str, said: str | None) -> None:
    found, refusal = postgresql.select(Packages(NAMES, OLD, NEW, (NEW, OLD)), to)
    assert found == version
    assert (refusal is None) is (said is None)
    if refusal and said:
        assert refusal.fact.startswith(said)
        assert refusal.next


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (Answer(None), None),
        (Answer(LastGood(100 * HOUR, "")), None),
        (Answer(LastGood(50 * HOUR, "")), "the last good backup is 51 h old"),
        (Answer(LastGood(None, "disk full")), "there is no good backup"),
        (unknown("no answer"), "the last backup is not known: no answer"),
    ],
)
def test_it_wants_a_good_backup_where_backups_are_made(
    kept: Answer[LastGood | None], said: str | None
) -> None:
    found = postgresql.unsaved(kept, 101 * HOUR, "inv")
    assert (found.fact if found else None) == said


def test_a_pause_is_the_longest_time_between_two_answers() -> None:
    assert postgresql.gap("@@up 1.0\n@@up 1.2\nSetting up\n@@up 4.7\n@@up 4.8\n") == pytest.approx(3.5)
    assert postgresql.gap("") == 0.0


class DebianHost:
    """As `Living`: a host that runs the real scripts, on packages and a mirror of the test."""

    def __init__(self, data: Path) -> None:
        self.cluster = placement.read(inventory.load("tests/inventory"))
        self.data = data

    def host(self, name: str) -> Host:
        return Host(name, "", frozenset(), {"lakehouse_data_dir": str(self.data)})

    def units(self, *_: str) -> dict[str, Answer[Unit]]:
        return {host.name: unknown("it is not asked") for host in self.cluster.hosts}

    def do(self, _: str, script: str, seconds: float) -> Answer[str]:
        done = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=seconds
        )
        return Answer(done.stdout)


@pytest.fixture
def mirror() -> Iterator[socket.socket]:
    """A mirror that takes a connection, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        yield silent


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror: socket.socket) -> Living:
    """A host with a server, the packages of the version before, and a mirror that does not answer."""
    (tmp_path / "data" / "packages" / "postgresql" / OLD).mkdir(parents=True)
    (tmp_path / "lists" / "partial").mkdir(parents=True)
    (tmp_path / "status").write_text(
        f"Package: postgresql-17\nStatus: install ok installed\nArchitecture: all\nVersion: {NEW}\n"
        "Maintainer: a\nDescription: b\n"
    )
    (tmp_path / "sources.list").write_text(
        f"deb [trusted=yes] http://127.0.0.1:{mirror.getsockname()[1]}/ x main\n"
    )
    (tmp_path / "apt.conf").write_text(
        f'''Dir::Etc::SourceList "{tmp_path}/sources.list"; Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{tmp_path}/lists"; Dir::State::status "{tmp_path}/status"; Dir::Cache "{tmp_path}";
Acquire::http::Proxy::127.0.0.1 "DIRECT"; APT::Sandbox::User "root";
'''
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.setenv("DPKG_ADMINDIR", str(tmp_path))
    monkeypatch.setattr(postgresql, "_ASK_SECONDS", 60.0)
    monkeypatch.setattr(postgresql, "_UPDATE_SECONDS", 1)
    return cast("Living", DebianHost(tmp_path / "data"))


ASKED = {"to": "17.11", "force": True}


def test_packages_that_are_kept_come_back_also_while_no_mirror_answers(
    debian: Living, mirror: socket.socket
) -> None:
    work = postgresql.prepare(debian, Request(ASKED, "inv"))
    mirror.accept()
    assert work.refusal is None
    assert [(row["old"], row["new"]) for row in work.plan] == [(NEW, OLD)]


def test_a_plan_that_is_only_shown_leaves_the_lists_of_apt_as_they_are(
    debian: Living, mirror: socket.socket
) -> None:
    work = postgresql.prepare(debian, Request(ASKED, "inv", dry_run=True))
    with pytest.raises(BlockingIOError):
        mirror.accept()
    assert [(row["old"], row["new"]) for row in work.plan] == [(NEW, OLD)]
