"""A daemon is started, restarted or left alone by what systemd and the files themselves say."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.lakehouse import units
from plugins.modules import lakehouse_daemon as daemon

HOUR = 3600.0


def known(
    state: str = "active", started: float | None = None, drop_ins: str = "", unit: str = ""
) -> dict[str, str]:
    """What systemd says of a unit whose process started at that time (now, unless said)."""
    moment = datetime.fromtimestamp(time.time() if started is None else started, UTC)
    return {
        "ActiveState": state,
        "ActiveEnterTimestamp": "",
        "ExecMainStartTimestamp": moment.strftime("%a %Y-%m-%d %H:%M:%S.%f UTC"),
        "FragmentPath": unit,
        "DropInPaths": drop_ins,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that has just changed."""
    path = tmp_path / "daemon.conf"
    path.write_text("a=1\n", encoding="utf-8")
    return path


def test_a_timer_is_as_old_as_it_is_active(file: Path) -> None:
    timer = known(unit=str(file), started=time.time() - HOUR)
    timer["ActiveEnterTimestamp"] = timer.pop("ExecMainStartTimestamp")
    assert units.is_stale(timer, [])
    timer["ActiveEnterTimestamp"] = known(started=time.time() + HOUR)["ExecMainStartTimestamp"]
    assert not units.is_stale(timer, [])


def test_a_timer_is_asked_with_the_unit_that_it_starts_and_needs_the_reload_of_either() -> None:
    assert units.question("clean.timer")[-2:] == ["clean.timer", "clean.service"]
    assert units.question("daemon")[-1:] == ["daemon"]
    timer = ["ActiveState=active", "NeedDaemonReload=no"]
    service = ["ActiveState=failed", "NeedDaemonReload=yes", "ExecMainStartTimestamp="]
    assert units.properties([*timer, "", *service]) == {"ActiveState": "active", "NeedDaemonReload": "yes"}
    assert units.properties([*timer, "", *timer]) == {"ActiveState": "active", "NeedDaemonReload": "no"}


RIGHT, WRONG = ({"kind": "command", "argv": ["echo", said], "prints": "alive"} for said in ("alive", "no"))
BEFORE, AFTER = time.time() - HOUR, time.time() + HOUR


class TestStartedAt:
    """The time that systemd prints."""

    def test_microseconds_count(self) -> None:
        printed = "Sat 2026-01-31 12:00:00.123456 UTC"
        moment = datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(microseconds=123456)
        assert units.started_at(printed) == moment.timestamp()

    def test_a_unit_that_never_ran_started_before_everything(self) -> None:
        assert units.started_at("") == 0.0

    def test_an_unknown_format_is_an_error_and_not_a_guess(self) -> None:
        with pytest.raises(ValueError, match="does not match format"):
            units.started_at("@1769860800")


class TestChangedAt:
    """When what a daemon reads last changed."""

    def test_what_is_not_there_never_changed(self, tmp_path: Path) -> None:
        assert units.changed_at(str(tmp_path / "none")) == 0.0

    def test_the_content_s_own_time_does_not_count(self, file: Path) -> None:
        os.utime(file, (BEFORE, BEFORE))  # as a file has that was unpacked, or copied with its times
        assert units.changed_at(str(file)) > BEFORE + HOUR / 2

    def test_a_link_changes_with_its_target_and_with_itself(self, file: Path, tmp_path: Path) -> None:
        link = tmp_path / "current"
        link.symlink_to(file)
        times = {file.stat().st_ctime, link.lstat().st_ctime}
        assert units.changed_at(str(link)) == max(times)


class TestStale:
    """Whether the process read something older than what is there."""

    def test_a_file_that_changed_since(self, file: Path) -> None:
        assert units.is_stale(known(started=BEFORE), [str(file)])

    def test_a_process_that_is_younger(self, file: Path) -> None:
        assert not units.is_stale(known(started=AFTER), [str(file)])

    def test_the_unit_and_its_drop_ins_count(self, file: Path) -> None:
        assert units.is_stale(known(started=BEFORE, unit=str(file)), [])
        assert units.is_stale(known(started=BEFORE, drop_ins=f"/none/a.conf {file}"), [])

    def test_nothing_to_read(self, tmp_path: Path) -> None:
        assert not units.is_stale(known(started=BEFORE), [str(tmp_path / "none")])


class TestNeeded:
    """The action."""

    @pytest.mark.parametrize("state", ["inactive", "failed", "deactivating"])
    def test_what_does_not_run_is_started(self, state: str) -> None:
        assert units.needed(known(state), enabled=True, stale=False) == "started"

    @pytest.mark.parametrize("state", ["active", "activating", "reloading"])
    def test_what_runs_and_is_up_to_date_is_left_alone(self, state: str) -> None:
        assert units.needed(known(state), enabled=True, stale=False) == "none"

    def test_what_runs_with_old_files_is_restarted(self) -> None:
        assert units.needed(known(), enabled=True, stale=True) == "restarted"

    def test_what_is_switched_off_is_stopped_once(self) -> None:
        assert units.needed(known(), enabled=False, stale=True) == "stopped"
        assert units.needed(known("inactive"), enabled=False, stale=True) == "none"


class TestPending:
    """What a run in check mode would have changed by now."""

    def test_a_file_that_would_change_is_a_restart(self, file: Path) -> None:
        assert units.is_stale(known(started=AFTER), [str(file)], pending=[str(file)])

    def test_a_unit_that_would_change_is_one_too(self, tmp_path: Path) -> None:
        unit = str(tmp_path / "a.service")
        assert units.is_stale(known(unit=unit), [], pending=[unit])

    def test_somebody_else_s_file_is_none(self, file: Path) -> None:
        assert not units.is_stale(known(), [], pending=[str(file)])


class TestDeaf:
    """A unit that runs and does not listen where its clients ask."""

    def test_it_is_when_nobody_takes_the_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            place = {"host": "127.0.0.1", "port": str(listener.getsockname()[1])}
            assert not units.is_deaf(known(), [place])
        assert units.is_deaf(known(), [place])

    def test_one_that_starts_or_listens_nowhere_is_not(self) -> None:
        assert not units.is_deaf(known("activating"), [{"host": "127.0.0.1", "port": "1"}])
        assert not units.is_deaf(known(), [])


class Ended(Exception):  # noqa: N818 -- how a module ends
    """A module that has failed, with its message."""


class TestGate:
    """Whether a unit that runs may be restarted. A probe is a list of answers here."""

    @pytest.fixture(autouse=True)
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(daemon, "ask", lambda probe: probe.pop(0) if len(probe) > 1 else probe[0])
        monkeypatch.setattr(daemon, "GATE_SECONDS", 0.5)
        monkeypatch.setattr(daemon, "POLL_SECONDS", 0.01)

    @staticmethod
    def passed(gate: list[str | None], ready: list[str | None]) -> None:
        def fail(msg: str) -> None:
            raise Ended(msg)

        module: Any = SimpleNamespace(params={"gate": [gate], "ready": [ready]}, fail_json=fail)
        daemon.pass_gate(module, "hdfs-datanode")

    def test_it_is_waited_for_until_it_opens(self) -> None:
        gate = ["3 blocks lack a replica", "1 blocks lack a replica", None]
        self.passed(gate, [None])
        assert gate == [None]

    def test_one_that_does_not_open_is_said_with_the_next_command(self) -> None:
        with pytest.raises(Ended) as ended:
            self.passed(["3 blocks lack a replica"], [None])
        assert str(ended.value) == (
            "hdfs-datanode: not restarted after 0.5 s: 3 blocks lack a replica;"
            " next: .venv/bin/lakehouse doctor"
        )

    def test_who_serves_nobody_is_not_waited_for(self) -> None:
        self.passed(["3 blocks lack a replica"], ["no answer"])

    def test_one_that_serves_waits_though_its_leader_is_in_safe_mode(self) -> None:
        def fail(msg: str) -> None:
            raise Ended(msg)

        ready: Any = [[None], ["the NameNode is in safe mode"]]
        module: Any = SimpleNamespace(
            params={"gate": [["HDFS is in safe mode"]], "ready": ready}, fail_json=fail
        )
        with pytest.raises(Ended, match=r"not restarted after 0\.5 s: HDFS is in safe mode"):
            daemon.pass_gate(module, "hdfs-datanode")

    @pytest.mark.parametrize(
        ("state", "own", "serves"),
        [("active", [None], True), ("active", ["refused"], False), ("activating", [None], False)],
    )
    def test_only_one_that_serves_waits_for_its_turn(
        self, state: str, own: list[str | None], *, serves: bool
    ) -> None:
        ready: Any = [own, ["its leader is in safe mode"]]
        assert daemon.serves(known(state), ready) is serves
        assert daemon.serves(known(state), []) is (state == "active")


class TestAnnounce:
    """A process that is told of its restart."""

    @pytest.fixture
    def process(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
        """The main process of a unit, as systemd says."""
        process = subprocess.Popen(["sleep", "60"])
        said = subprocess.CompletedProcess([], 0, f"{process.pid}\n", "")
        monkeypatch.setattr(daemon, "systemctl", lambda *_: said)
        monkeypatch.setattr(daemon, "POLL_SECONDS", 0.01)
        # Else it would be a zombie, which its parent alone buries.
        Thread(target=process.wait, daemon=True).start()
        yield process
        process.kill()

    def test_it_is_waited_for_until_it_has_ended(self, process: subprocess.Popen[bytes]) -> None:
        daemon.announce("hdfs-datanode", ["kill", str(process.pid)])
        assert not Path("/proc", str(process.pid)).exists()

    @pytest.mark.parametrize("argv", [["false"], ["no-such-program"], ["true"], ["sleep", "60"]])
    def test_one_that_does_not_hear_it_is_left_to_systemd(
        self, process: subprocess.Popen[bytes], argv: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(daemon, "TELL_SECONDS", 0.2)
        monkeypatch.setattr(daemon, "LEAVE_SECONDS", 0.2)
        daemon.announce("hdfs-datanode", argv)
        assert Path("/proc", str(process.pid)).exists()

    def test_where_nothing_runs_nobody_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        said = subprocess.CompletedProcess([], 0, f"{daemon.NO_PROCESS}\n", "")
        monkeypatch.setattr(daemon, "systemctl", lambda *_: said)
        daemon.announce("hdfs-datanode", ["touch", str(tmp_path / "told")])
        assert not (tmp_path / "told").exists()


class TestSettled:
    """Of several units, those of which nothing is to be done and that answer."""

    UNIT = known() | {"LoadState": "loaded", "NeedDaemonReload": "no", "UnitFileState": "enabled"}
    OFF = UNIT | {"ActiveState": "inactive", "UnitFileState": "disabled"}

    def test_one_that_runs_and_answers(self) -> None:
        assert daemon.is_settled(self.UNIT, {"name": "a", "ready": [RIGHT]})

    def test_one_that_is_off_and_shall_be(self) -> None:
        assert daemon.is_settled(self.OFF, {"name": "a", "enabled": False, "ready": [WRONG]})

    @pytest.mark.parametrize(
        "differs",
        [
            {"ActiveState": "failed"},
            {"LoadState": "not-found"},
            {"NeedDaemonReload": "yes"},
            {"UnitFileState": "disabled"},
        ],
        ids=lambda differs: next(iter(differs)),
    )
    def test_what_systemd_has_otherwise(self, differs: dict[str, str]) -> None:
        assert not daemon.is_settled(self.UNIT | differs, {"name": "a"})

    def test_a_wrong_answer(self) -> None:
        assert not daemon.is_settled(self.UNIT, {"name": "a", "ready": [RIGHT, WRONG]})

    def test_a_file_that_changed_since(self, file: Path) -> None:
        old = known(started=BEFORE)
        assert not daemon.is_settled(self.UNIT | old, {"name": "a", "files": [str(file)]})

    def test_one_that_runs_and_shall_not(self) -> None:
        assert not daemon.is_settled(self.UNIT, {"name": "a", "enabled": False})
