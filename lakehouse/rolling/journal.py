"""The journal of each run, a file of JSON lines on the control machine: what it intended, and how it ended.

Which steps are done is read from the cluster, not from the journal.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import command
from lakehouse.rolling.result import Ending

_FILE = re.compile(r"r(\d+)\.jsonl")
# The folder has what an operator typed; other users must not read it.
_PRIVATE = 0o700
RUNNING, KILLED = "running", "killed"
# Events of the lock, and of a plan that was read again under it.
LOCKS, PLANNED = "locks", "planned"
# Events of a step.
BEGINS, DONE = "begins", "done"
# Event of a rollback.
BACK = "back"


@dataclass(frozen=True)
class Run:
    """A run as recorded in its journal. `ended` is None where no end was written: it runs, or was killed."""

    id: str
    verb: str
    target: str
    arguments: Mapping[str, Any]
    plan: tuple[Mapping[str, Any], ...]
    pid: int
    at: float
    lasted: float
    ended: Ending | None
    facts: tuple[str, ...]
    touched: bool
    # Steps that were begun, as host and step; and components that were rolled back.
    begun_steps: frozenset[tuple[str, str]] = frozenset()
    rolled_back: frozenset[str] = frozenset()
    # When its process started.
    started: str = ""
    # The marks of its locks.
    marks: frozenset[str] = frozenset()

    @property
    def state(self) -> str:
        """How it ended, as a word; running or killed where no end was written."""
        if self.ended is not None:
            return self.ended.word
        return RUNNING if alive(self.pid, self.started) else KILLED

    @property
    def resumable(self) -> bool:
        """Whether it has changed the cluster and is incomplete; a refused resume does not complete it."""
        unfinished = {Ending.HALFWAY, Ending.INTERRUPTED}
        if self.ended is None:
            return self.state == KILLED
        complete = {Ending.DONE, Ending.BACK}
        return self.ended in unfinished or (self.touched and self.ended not in complete)


def process() -> dict[str, Any]:
    """Return what identifies this process on this machine, across reboots."""
    return {"pid": os.getpid(), "started": _started(os.getpid())}


def alive(pid: int, started: str = "") -> bool:
    """Return whether a process of this machine runs; one `started` at another time is another."""
    current = _started(pid)
    return bool(current) and started in {"", current}


def _started(pid: int) -> str:
    """Return the boot ID and start time (in clock ticks) of a process; empty where it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # proc_pid_stat(5): the 22nd field. The second, a name in brackets, may have spaces.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {stat.rpartition(')')[2].split()[19]}"


class Journal:
    """The journal of one run; each line is on the disk before the next step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def id(self) -> str:
        """The name of the run, such as r17."""
        return self._path.stem

    @property
    def folder(self) -> Path:
        """The folder with the runs of its cluster."""
        return self._path.parent

    def planned(self, arguments: Mapping[str, Any], plan: Iterable[Mapping[str, Any]]) -> None:
        """Write a new plan, which replaces the one written at the start."""
        self.write(PLANNED, arguments=dict(arguments), plan=list(plan))

    def write(self, event: str, **facts: Any) -> None:
        """Append a line; LakehouseError where it cannot be written."""
        line = json.dumps({"event": event, "at": round(time.time(), 3), **facts}).encode()
        try:
            with self._path.open("ab+") as stream:
                stream.seek(max(stream.seek(0, os.SEEK_END) - 1, 0))
                # End an incomplete line of a killed run.
                torn = stream.read(1) not in {b"", b"\n"}
                stream.write(b"\n" * torn + line + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise LakehouseError(f"{self._path}: {error.strerror}", f"df -h {self._path.parent}") from error


def begin(
    folder: Path, verb: str, target: str, arguments: Mapping[str, Any], plan: Iterable[Mapping[str, Any]]
) -> Journal:
    """Create the journal of a new run under the next number, with its plan."""
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    number = max([_number(path) for path in folder.iterdir()], default=0) + 1
    while True:
        path = folder / f"r{number}.jsonl"
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:  # another run of this machine was faster
            number += 1
            continue
        journal = Journal(path)
        journal.write(
            "begun", verb=verb, target=target, arguments=dict(arguments), plan=list(plan), **process()
        )
        return journal


def _number(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    return int(match[1]) if match else 0


def runs(folder: Path) -> tuple[Run, ...]:
    """Return all runs, the oldest first."""
    if not folder.is_dir():
        return ()
    paths = sorted((path for path in folder.iterdir() if _number(path)), key=_number)
    journals = (read(path.stem, path.read_text(encoding="utf-8")) for path in paths)
    return tuple(run for run in journals if run is not None)


def read(run: str, text: str) -> Run | None:
    """Parse the run of a journal; None without a complete first line. Incomplete lines are ignored."""
    lines = list(_lines(text))
    header = next((line for line in lines if line["event"] == "begun"), None)
    if header is None:
        return None
    last, latest_start = lines[-1], next((line for line in reversed(lines) if "pid" in line), header)
    complete = last["event"] == "ended"
    latest_plan = next((line for line in reversed(lines) if line["event"] == PLANNED), header)
    return Run(
        id=run,
        verb=header["verb"],
        target=header["target"],
        arguments=latest_plan["arguments"],
        plan=tuple(latest_plan["plan"]),
        pid=int(latest_start["pid"]),
        at=float(header["at"]),
        lasted=float(last["at"]) - float(header["at"]),
        ended=Ending(last["ending"]) if complete else None,
        facts=tuple(last["facts"]) if complete else (),
        touched=any(line["event"] in {BEGINS, DONE} for line in lines),
        begun_steps=frozenset((line["host"], line["what"]) for line in lines if line["event"] == BEGINS),
        rolled_back=frozenset(line["what"] for line in lines if line["event"] == BACK),
        started=str(latest_start.get("started", "")),
        marks=frozenset(str(line["mark"]) for line in lines if line["event"] == LOCKS),
    )


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def find(folder: Path, name: str | None, inventory: str) -> Run:
    """Return a run by its name, or the last resumable one; LakehouseError where there is none.

    One that is older than a completed run has to be named, since the cluster has changed since.
    """
    all_runs, list_command = runs(folder), command("runs", inventory)
    if name is None:
        latest = next((run for run in reversed(all_runs) if run.resumable), None)
        if latest is None:
            raise LakehouseError("no interrupted run to resume", list_command)
        last_done = next(
            (run for run in reversed(all_runs) if run.touched and run.ended is Ending.DONE), latest
        )
        if all_runs.index(last_done) > all_runs.index(latest):
            fact = f"{latest.id} ({latest.verb} {latest.target}) was stopped before {last_done.id} was done"
            resume = command(f"resume {latest.id}", inventory)
            raise LakehouseError(fact, f"{resume}, if it is still wanted")
        return latest
    run = next((run for run in all_runs if run.id == name), None)
    if run is None:
        raise UsageError(f"there is no run {name} of this cluster on this machine", list_command)
    if not run.resumable:
        raise LakehouseError(f"run {name} ({run.verb} {run.target}) is {run.state}", list_command)
    return run
