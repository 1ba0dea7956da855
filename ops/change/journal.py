"""What runs were meant to do and how they ended: a file of JSON lines each, on the control machine.

A journal is of intent. What is done is read from the cluster, so that no file can say otherwise.
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
from ops.change.result import Ending

_FILE = re.compile(r"r(\d+)\.jsonl")
# Such a folder holds what an operator typed; others need not read it.
_PRIVATE = 0o700
RUNNING, KILLED = "running", "killed"
# Of the lock that it is about to take, and of a plan that was read again under it.
LOCKS, PLANNED = "locks", "planned"
# Of a step.
BEGINS, DONE = "begins", "done"
# Of a run that takes back what it has begun.
BACK = "back"


@dataclass(frozen=True)
class Run:
    """A run as its journal tells it. `ended` is None where no end was written: it runs, or was killed."""

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
    # What was begun, as host and what; and what it was taking back.
    begun: frozenset[tuple[str, str]] = frozenset()
    back: frozenset[str] = frozenset()
    # When its process started.
    started: str = ""
    # Of the locks that it has taken.
    marks: frozenset[str] = frozenset()

    @property
    def state(self) -> str:
        """How it ended, in a word; running or killed where it did not."""
        if self.ended is not None:
            return self.ended.word
        return RUNNING if alive(self.pid, self.started) else KILLED

    @property
    def resumable(self) -> bool:
        """Whether it has touched the cluster and is not at its end, which no refused resume is."""
        unfinished = {Ending.HALFWAY, Ending.INTERRUPTED}
        if self.ended is None:
            return self.state == KILLED
        over = {Ending.DONE, Ending.BACK}
        return self.ended in unfinished or (self.touched and self.ended not in over)


def process() -> dict[str, Any]:
    """Return what tells this process from every other of this machine, before and after a boot."""
    return {"pid": os.getpid(), "started": _started(os.getpid())}


def alive(pid: int, started: str = "") -> bool:
    """Tell whether a process of this machine runs; one that `started` at another time is another one."""
    now = _started(pid)
    return bool(now) and started in {"", now}


def _started(pid: int) -> str:
    """Return the boot, and the clock ticks from there to the start of a process; empty where it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # proc_pid_stat(5): the 22nd field. The second, a name in brackets, may have spaces.
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {stat.rpartition(')')[2].split()[19]}"


class Journal:
    """The journal of one run, to which lines are added; each is on the disk before the next step."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def id(self) -> str:
        """The run, such as r17."""
        return self._path.stem

    @property
    def folder(self) -> Path:
        """Where the runs of its cluster are."""
        return self._path.parent

    def planned(self, arguments: Mapping[str, Any], plan: Iterable[Mapping[str, Any]]) -> None:
        """Write what the run is meant to do, in place of what was written when it was begun."""
        self.write(PLANNED, arguments=dict(arguments), plan=list(plan))

    def write(self, event: str, **facts: Any) -> None:
        """Add a line; LakehouseError where the disk takes none."""
        line = json.dumps({"event": event, "at": round(time.time(), 3), **facts}).encode()
        try:
            with self._path.open("ab+") as stream:
                stream.seek(max(stream.seek(0, os.SEEK_END) - 1, 0))
                # What a killed run has half written ends here.
                torn = stream.read(1) not in {b"", b"\n"}
                stream.write(b"\n" * torn + line + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise LakehouseError(f"{self._path}: {error.strerror}", f"df -h {self._path.parent}") from error


def begin(
    folder: Path, verb: str, target: str, arguments: Mapping[str, Any], plan: Iterable[Mapping[str, Any]]
) -> Journal:
    """Give a new run the next number, and write what it is meant to do."""
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
    found = _FILE.fullmatch(path.name)
    return int(found[1]) if found else 0


def runs(folder: Path) -> tuple[Run, ...]:
    """Return all runs, the first one first."""
    if not folder.is_dir():
        return ()
    paths = sorted((path for path in folder.iterdir() if _number(path)), key=_number)
    found = (read(path.stem, path.read_text(encoding="utf-8")) for path in paths)
    return tuple(run for run in found if run is not None)


def read(run: str, text: str) -> Run | None:
    """Return the run of a journal; None where it ended before its first line. Half a line is none."""
    lines = list(_lines(text))
    begun = next((line for line in lines if line["event"] == "begun"), None)
    if begun is None:
        return None
    last, resumed = lines[-1], next((line for line in reversed(lines) if "pid" in line), begun)
    over = last["event"] == "ended"
    planned = next((line for line in reversed(lines) if line["event"] == PLANNED), begun)
    return Run(
        id=run,
        verb=begun["verb"],
        target=begun["target"],
        arguments=planned["arguments"],
        plan=tuple(planned["plan"]),
        pid=int(resumed["pid"]),
        at=float(begun["at"]),
        lasted=float(last["at"]) - float(begun["at"]),
        ended=Ending(last["ending"]) if over else None,
        facts=tuple(last["facts"]) if over else (),
        touched=any(line["event"] in {BEGINS, DONE} for line in lines),
        begun=frozenset((line["host"], line["what"]) for line in lines if line["event"] == BEGINS),
        back=frozenset(line["what"] for line in lines if line["event"] == BACK),
        started=str(resumed.get("started", "")),
        marks=frozenset(str(line["mark"]) for line in lines if line["event"] == LOCKS),
    )


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def find(folder: Path, name: str | None, inventory: str) -> Run:
    """Return a run by its name, or the last one that can be resumed; LakehouseError where there is none.

    One that is older than a run which was done since has to be named: the cluster is another one by now.
    """
    known, look = runs(folder), command("runs", inventory)
    if name is None:
        found = next((run for run in reversed(known) if run.resumable), None)
        if found is None:
            raise LakehouseError("no interrupted run to resume", look)
        later = next((run for run in reversed(known) if run.touched and run.ended is Ending.DONE), found)
        if known.index(later) > known.index(found):
            what = f"{found.id} ({found.verb} {found.target}) was stopped before {later.id} was done"
            wanted = command(f"resume {found.id}", inventory)
            raise LakehouseError(what, f"{wanted}, if it is still wanted")
        return found
    named = next((run for run in known if run.id == name), None)
    if named is None:
        raise UsageError(f"there is no run {name} of this cluster on this machine", look)
    if not named.resumable:
        raise LakehouseError(f"run {name} ({named.verb} {named.target}) is {named.state}", look)
    return named
