"""Operations run a command only where a host differs, and say why one has failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.remote import operations
from lakehouse.remote.operations import Operation
from tests.unit import local_host, patience
from tests.unit.local_host import LocalHost


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHost]:
    with local_host.opened(tmp_path / "systemd", monkeypatch) as opened:
        yield opened


UNIT = "a.service"
STOP, START = f"stop {UNIT}", f"start {UNIT}"
ENABLE, DISABLE = f"--quiet enable {UNIT}", f"--quiet disable {UNIT}"


@pytest.mark.parametrize(
    ("active", "enabled", "operation", "calls"),
    [
        ("active", "enabled", operations.stopped(UNIT), [STOP]),
        ("active", "enabled", operations.stopped(UNIT, enabled=False), [DISABLE, STOP]),
        # systemd is about to restart it.
        ("activating", "disabled", operations.stopped(UNIT, enabled=False), [STOP]),
        ("failed", "disabled", operations.stopped(UNIT, enabled=False), []),
        ("inactive", "enabled", operations.stopped(UNIT), []),
        ("inactive", "disabled", operations.running(UNIT), [START]),
        ("inactive", "disabled", operations.running(UNIT, enabled=True), [ENABLE, START]),
        ("active", "enabled", operations.running(UNIT, enabled=True), []),
        # Debian's template units are enabled by their generator.
        ("active", "enabled-runtime", operations.running(UNIT, enabled=True), []),
    ],
)
def test_a_unit_is_told_what_it_lacks_alone(
    host: LocalHost, active: str, enabled: str, operation: Operation, calls: list[str]
) -> None:
    host.unit(UNIT, active, enabled)
    assert host.bring([operation], check=True) == (["units.state"] if calls else [])
    assert host.calls == []
    host.bring([operation])
    assert host.calls == calls


def test_a_missing_unit_is_stopped_and_cannot_be_started(host: LocalHost) -> None:
    assert host.bring([operations.stopped("none.service", enabled=False)]) == []
    assert host.bring([operations.running("none.service")], check=True) == ["units.state"]


def test_systemd_reads_changed_units_once(host: LocalHost) -> None:
    host.unit(UNIT, "active", reload="yes")
    assert host.bring([operations.reread(UNIT)]) == ["units.reread"]
    host.unit(UNIT, "active")
    assert host.bring([operations.reread(UNIT)]) == []
    assert host.calls == ["daemon-reload"]


def test_files_with_all_texts_go_whatever_their_names(host: LocalHost, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    both = "it's ours\n/opt/a/\n"
    for name, text in {"both 'of\" them": both, "-f": both, "one": "/opt/a/"}.items():
        (programs / name).write_text(text, encoding="utf-8")
    removal = [operations.no_files_with(str(programs), "/opt/a/", "it's ours")]
    assert host.bring(removal) == ["files_with.absent"]
    assert [path.name for path in programs.iterdir()] == ["one"]
    assert host.bring(removal) == []
    assert host.bring([operations.no_files_with(f"{programs}/none", "x")]) == []


def test_a_link_goes_and_what_it_leads_to_stays(host: LocalHost, tmp_path: Path) -> None:
    """As of a masked unit, and of data that a person has moved to another disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "data").touch()
    (tmp_path / "folder").symlink_to(disk)
    (tmp_path / "unit").symlink_to("/dev/null")
    removal = [operations.no_folder(f"{tmp_path}/folder"), operations.no_file(f"{tmp_path}/unit")]
    assert host.bring(removal, check=True) == host.bring(removal) == ["files.directory", "files.file"]
    assert host.bring(removal) == []
    assert [path.name for path in disk.iterdir()] == ["data"]


def test_the_first_operation_that_fails_ends_the_others(host: LocalHost, tmp_path: Path) -> None:
    program, later = tmp_path / "systemd" / "systemctl", tmp_path / "later"
    program.write_text(program.read_text().replace("*) ", "*) exit 1;"))
    later.touch()
    host.unit(UNIT, "inactive")
    answer = host.living.bring(
        local_host.NAME, [operations.running(UNIT), operations.no_file(str(later))], patience.SECONDS
    )
    assert answer.why == "units.state has failed"
    assert later.exists()


def test_a_fact_that_cannot_be_read_says_what_its_command_printed(host: LocalHost, tmp_path: Path) -> None:
    program = tmp_path / "systemd" / "systemctl"
    program.write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    answer = host.living.bring(local_host.NAME, [operations.running(UNIT)], patience.SECONDS)
    assert "Failed to connect to bus" in answer.why


def test_what_a_command_prints_is_the_reason(host: LocalHost, tmp_path: Path) -> None:
    program = tmp_path / "systemd" / "systemctl"
    program.write_text(program.read_text().replace("*) ", "*) echo 'Unit is masked.' >&2; exit 1;"))
    host.unit(UNIT, "inactive")
    answer = host.living.bring(local_host.NAME, [operations.running(UNIT)], patience.SECONDS)
    assert answer.why == "Unit is masked."
