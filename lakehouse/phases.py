"""What is running and for how long: on the terminal, and in a file that several processes write together."""

from __future__ import annotations

import fcntl
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from lakehouse.errors import LakehouseError

PASSED = "passed"
FAILED = "failed"
WARNED = "yellow"


@dataclass(frozen=True)
class Phase:
    """One finished phase: when it began (seconds since the epoch), how long it took, passed or failed.

    ``warnings`` are the lines of findings that did not end it.
    """

    name: str
    started: float
    seconds: float
    status: str
    warnings: tuple[str, ...] = ()


def read(path: Path) -> tuple[Phase, ...]:
    """Return the phases in the order in which they began; none when none were recorded.

    Raises LakehouseError when the file is not what `Phases` writes.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        phases = [
            Phase(
                str(entry["name"]),
                float(entry["started"]),
                float(entry["seconds"]),
                str(entry["status"]),
                tuple(map(str, entry.get("warnings", ()))),
            )
            for entry in entries
        ]
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LakehouseError(f"{path} is not a list of phases ({error!r})", f"rm {path}") from None
    return tuple(sorted(phases, key=lambda phase: phase.started))


class Phases:
    """Shows each phase while it runs and appends it to the JSON list at `path` when it ends.

    A terminal gets a spinner with running seconds for every phase that is under way; anything else, such as
    the log of a CI job, gets one plain line at the start and one at the end. Phases may overlap, in threads
    and in processes; those of several processes add up until one of them calls `reset`.
    """

    def __init__(self, path: Path, console: Console | None = None) -> None:
        self._path = path
        self._console = console or Console()
        self._display = _Display(self._console) if self._console.is_terminal else None
        self._warned: set[str] = set()

    def reset(self) -> None:
        """Forget the phases of earlier runs."""
        self._path.unlink(missing_ok=True)

    def log(self, message: str) -> None:
        """Print a line of the phase that is running, without tearing its spinner."""
        self._console.print(Text(f"    {message}"), soft_wrap=True)

    @contextmanager
    def phase(self, name: str, *, spinner: bool = True) -> Iterator[Callable[[str], None]]:
        """Run the body as a phase. Whatever it raises is recorded as a failure and passed on.

        Yields a function that prints a warning, each line once, and records it with the phase.
        Say `spinner=False` where a child process writes to the same terminal: one would overwrite the other.
        """
        read(self._path)  # a broken list is found before the work, not after it
        display = self._display if spinner else None
        task = display.add(name) if display else None
        if task is None:
            self._print(f"==> {name} ...")
        started, clock = time.time(), time.monotonic()
        status = FAILED
        warnings: list[str] = []

        def warn(line: str) -> None:
            warnings.append(line)
            if line not in self._warned:
                self._warned.add(line)
                self._console.print(Text(line, WARNED), soft_wrap=True)

        try:
            yield warn
            status = PASSED
        finally:
            seconds = time.monotonic() - clock
            if display and task is not None:
                display.remove(task)
            self._print(f"<== {name} {'' if status == PASSED else 'FAILED after '}{seconds:.1f} s", status)
            # To the microsecond: two that begin in one millisecond are still in their order.
            unique = tuple(dict.fromkeys(warnings))
            self.record(Phase(name, round(started, 6), round(seconds, 3), status, unique))

    def _print(self, line: str, status: str = "") -> None:
        style = {PASSED: "green", FAILED: "bold red"}.get(status, "bold")
        self._console.print(Text(line, style), soft_wrap=True)

    def record(self, phase: Phase) -> None:
        """Add a finished phase to the file, such as one that another program has timed."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            phases = [*read(self._path), phase]
            temporary = self._path.with_suffix(".part")
            temporary.write_text(
                json.dumps([asdict(recorded) for recorded in phases], indent=2) + "\n", encoding="utf-8"
            )
            temporary.replace(self._path)


class _Display:
    """The spinners of all running phases: one live area, there as long as one of them runs."""

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def add(self, name: str) -> TaskID:
        with self._lock:
            task = self._progress.add_task(escape(name), total=None)
            self._progress.start()
            return task

    def remove(self, task: TaskID) -> None:
        with self._lock:
            self._progress.remove_task(task)
            if not self._progress.tasks:
                self._progress.stop()
