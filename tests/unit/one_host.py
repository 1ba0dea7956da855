"""A host that runs the scripts of the lock, and a run that changes it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lakehouse.maybe import Answer
from lakehouse.model.placement import Cluster
from lakehouse.remote.probing import Reply
from lakehouse.rolling import journal, lock, run
from lakehouse.rolling.lock import Holder
from lakehouse.rolling.result import RunResult
from lakehouse.rolling.run import Confirmed, Plan, Running, Work
from lakehouse.shared_options import ChangeOptions

HOLDER = Holder("r17", "restart", "ops", "ops1", 4121, 0.0, "abc")
Host = Callable[[str], Answer[Reply]]


def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Return a host that runs scripts; its /run is a folder of the test."""
    monkeypatch.setattr(lock, "_FOLDER", str(tmp_path))
    monkeypatch.setattr(lock, "_FILE", str(tmp_path / "run.lock"))

    def run(script: str) -> Answer[Reply]:
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        return Answer(Reply(done.stdout, 0.0, 0.0))

    return run


class OneHost:
    """As `Living`: one host, which runs the scripts of the lock."""

    def __init__(self, host: Host, cluster: Cluster | None = None) -> None:
        self.host = host
        self.cluster = cluster

    def everywhere(self, script: str, *, among: tuple[str, ...] = ("n1",)) -> dict[str, Answer[Reply]]:
        return {name: self.host(script) for name in among}

    def of(self, cluster: Cluster) -> OneHost:
        return OneHost(self.host, cluster)

    def repeat(self, *_: object) -> None:
        """No other run looks at this lock."""


def begun(folder: Path) -> journal.Journal:
    return journal.begin(folder, "restart", "datanode", {"service": "datanode"}, [{"host": "n1"}])


def carried_out(
    running: Running, work: Work, verb: str = "restart", *, now: Plan | None = None, break_lock: str = ""
) -> RunResult:
    """Do a work that was confirmed; `now` is what the plan is under the lock."""
    options = ChangeOptions(inventory="inv", break_lock=break_lock)
    plan = now or Plan(running.living, {}, work)
    confirmed = Confirmed(work, "lakehouse restart datanode -i inv", lambda: plan)
    return run._run(options, verb, running, confirmed, {})
