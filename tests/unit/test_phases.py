"""Phases: what a person sees, and what several threads and processes leave behind."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.console import Console

from lakehouse.errors import LakehouseError
from lakehouse.phases import Phase, Phases, read
from tests.unit import patience


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report" / "phases.json"


def plain() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=80)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_phase_is_two_plain_lines_in_a_log(path: Path) -> None:
    console = plain()
    phases = Phases(path, console)
    with phases.phase("artifacts"):
        phases.log("fetching [128] files")
    first, log, last = printed(console).splitlines()
    assert first == "==> artifacts ..."
    assert log == "    fetching [128] files"
    assert re.fullmatch(r"<== artifacts \d+\.\d s", last)


def test_a_terminal_shows_running_phases_and_keeps_only_their_ends(path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    phases = Phases(path, console)
    with phases.phase("artifacts [1]"), phases.phase("nodes"):
        phases.log("pulling debian")
    assert "artifacts [1]" in printed(console)
    assert re.search(r"<== artifacts \[1\] \d+\.\d s", printed(console))
    assert "==>" not in printed(console)
    with phases.phase("site", spinner=False):
        pass
    assert "==> site ..." in printed(console)


def test_a_phase_is_recorded_with_its_start_and_seconds(path: Path) -> None:
    with Phases(path, plain()).phase("artifacts"):
        pass
    (entry,) = json.loads(path.read_text())
    assert entry.keys() == {"name", "started", "seconds", "status", "warnings"}
    assert entry["status"] == "passed"


@pytest.mark.parametrize("error", [LakehouseError("mirror down"), KeyboardInterrupt()])
def test_what_breaks_a_phase_is_recorded_and_passed_on(path: Path, error: BaseException) -> None:
    console = plain()
    with pytest.raises(type(error)), Phases(path, console).phase("artifacts"):
        raise error
    assert [phase.status for phase in read(path)] == ["failed"]
    assert re.search(r"<== artifacts FAILED after \d+\.\d s", printed(console))


def test_a_warning_is_printed_once_and_recorded_with_each_phase_that_found_it(path: Path) -> None:
    console = plain()
    phases = Phases(path, console)
    for name in ("site", "render"):
        with phases.phase(name) as warn:
            warn("WARN a.b all: fact: act")
            warn("WARN a.b all: fact: act")
    assert printed(console).splitlines().count("WARN a.b all: fact: act") == 1
    assert [phase.warnings for phase in read(path)] == [("WARN a.b all: fact: act",)] * 2


def test_a_list_of_before_has_no_warnings(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('[{"name": "site", "started": 1, "seconds": 2, "status": "passed"}]')
    assert read(path) == (Phase("site", 1, 2, "passed"),)


def test_overlapping_phases_are_listed_by_their_start(path: Path) -> None:
    phases = Phases(path, Console(file=io.StringIO(), force_terminal=True, width=80))
    inside = threading.Barrier(2, timeout=patience.SECONDS)

    def short() -> None:
        with phases.phase("nodes"):
            inside.wait()

    with phases.phase("artifacts"):
        thread = threading.Thread(target=short)
        thread.start()
        inside.wait()
        thread.join()
    first, second = read(path)
    assert (first.name, second.name) == ("artifacts", "nodes")
    assert first.started <= second.started
    assert second.started + second.seconds <= first.started + first.seconds + 0.01


def test_processes_add_to_one_list_until_it_is_reset(path: Path) -> None:
    code = "\n".join(
        [
            "import sys; from pathlib import Path; from lakehouse.phases import Phases",
            "phases = Phases(Path(sys.argv[1]))",
            "for n in range(10):",
            "    with phases.phase(f'{sys.argv[2]}{n}'): pass",
        ]
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    assert sorted(phase.name for phase in read(path)) == sorted(
        f"{name}{n}" for name in "ab" for n in range(10)
    )
    Phases(path, plain()).reset()
    assert read(path) == ()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"name": "x"}', '[{"name": "site", "seconds": 1}]'])
def test_a_broken_list_is_one_line_and_found_before_the_work(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    ran = False
    with pytest.raises(LakehouseError) as caught, Phases(path, plain()).phase("site"):
        ran = True
    assert not ran
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.next_command == f"rm {path}"


def test_read_accepts_what_phases_wrote(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('[{"name": "site", "started": 5, "seconds": 2, "status": "passed"}]')
    assert read(path) == (Phase("site", 5.0, 2.0, "passed"),)
