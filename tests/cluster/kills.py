"""Kills of a verb at shares of a run that was measured, counted where they land, and each one completed.

A moment is counted from the run's first step, so that none falls into the start of Python.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lakehouse.model import inventory, placement
from lakehouse.rolling import journal, run
from lakehouse.rolling.journal import Run
from suites.testbed.waiting import wait_for
from tests.cluster.changing import SECONDS, Verb
from tests.cluster.machines import Machine

# How many have to land, of how many that are tried from a twentieth of a run to its last twentieth.
LEAST, _TRIED = 10, 12
SHARES = tuple(0.05 + 0.9 * number / (_TRIED - 1) for number in range(_TRIED))
# For runs that last minutes, of a command that has all its kills in shorter ones.
FEW_SHARES = SHARES[1::3]
_BEGIN_SECONDS = 300


def least(tried: int) -> int:
    """Return how many have to land of so many that are tried."""
    return tried * LEAST // _TRIED


Begun = Callable[[Run], bool]
# Kills something, and returns whether that was alive.
Kill = Callable[["subprocess.Popen[str]"], bool]


def touched(found: Run) -> bool:
    """Tell whether a run has begun its first step."""
    return found.touched


def here(process: subprocess.Popen[str]) -> bool:
    """Kill the verb's own process, as when the control machine is switched off."""
    alive = process.poll() is None
    process.kill()
    return alive


def unit(machine: Machine, name: str) -> tuple[Begun, Kill]:
    """Return when a unit of a host works for a run, and what kills it there, with all that it has started."""

    def active() -> bool:
        state = str(machine.shell.run("systemctl is-active %s", name).stdout).strip()
        return state in {"active", "activating"}

    def kill(_: subprocess.Popen[str]) -> bool:
        alive = active()
        machine.shell.run("systemctl kill --signal=KILL %s", name)
        return alive

    return lambda found: bool(found.marks) and active(), kill


@dataclass
class Kills:
    """The kills of one verb; `answer` is what a person says to its `resume`."""

    verb: Verb
    answer: Sequence[str] = ("--yes",)
    begun: Begun = touched
    kill: Kill = here
    tried: int = 0
    landed: list[float] = field(default_factory=list)

    def measured(self, words: Sequence[str]) -> float:
        """Run a verb to its end; return the seconds from its first step to there."""
        process, began = self._first_step(words)
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, (words, out, err)
        return time.monotonic() - began

    def at(self, share: float, seconds: float, words: Sequence[str], times: int = 1) -> float:
        """Kill a verb at a share of its `seconds`, and have the next run complete it.

        With more `times`, what would complete it is killed, too, after as long.
        Returns the seconds to take shares of from now on: fewer where this run ended before its kill.
        """
        process, began = self._first_step(words)
        lasts, again = seconds, words
        for turn in range(times):
            if turn:
                process, began = self.verb.started(*again), time.monotonic()
            self.tried += 1
            try:
                out, _ = process.communicate(timeout=max(began + share * seconds - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                if self.kill(process):
                    self.landed.append(share)
                out, _ = process.communicate(timeout=SECONDS)
            else:
                lasts = lasts if turn else time.monotonic() - began
            again, state = self._again(words)
            print(f"{' '.join(words)}: {share:.0%} of {seconds:.1f} s: {state}", out, sep="\n")  # noqa: T201 -- a failure is judged by it
        done = self.verb.run(*again)
        assert done.returncode == 0, (words, share, done)
        return lasts

    def enough(self) -> str:
        """Return how many have landed, for the report; AssertionError where they are too few."""
        assert len(self.landed) >= least(self.tried), self.landed
        return f"{len(self.landed)} of {self.tried} kills landed"

    def _first_step(self, words: Sequence[str]) -> tuple[subprocess.Popen[str], float]:
        """Start a verb; return it once its run has begun its first step, and when that was."""
        has_begun = self._watch(words)
        process = self.verb.started(*words)

        def begun() -> bool:
            if process.poll() is not None:
                raise AssertionError((words, *process.communicate()))
            return has_begun()

        wait_for(f"the first step of {words[0]}", begun, seconds=_BEGIN_SECONDS, pause=0.05)
        return process, time.monotonic()

    def _watch(self, words: Sequence[str]) -> Callable[[], bool]:  # noqa: ARG002 -- for those without a journal
        """Return what tells whether a run that is started after now has begun its first step."""
        before = {one.id for one in self._runs()}

        def begun() -> bool:
            fresh = [one for one in self._runs() if one.id not in before]
            return bool(fresh) and self.begun(fresh[-1])

        return begun

    def _again(self, words: Sequence[str]) -> tuple[Sequence[str], str]:
        """Return the words that complete a run that was killed, and how it ended."""
        left = self._runs()[-1]
        return ["resume", left.id, *self.answer] if left.resumable else words, left.state

    def _runs(self) -> tuple[Run, ...]:
        return journal.runs(self._folder)

    @cached_property
    def _folder(self) -> Path:
        return run.folder(placement.read(inventory.load(self.verb.path)))
