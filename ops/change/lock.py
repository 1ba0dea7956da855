"""One change at a time: a file on each host says which run holds the cluster, and is touched while it lives.

It lies in /run, so a host that boots has none. A run needs it on more than half of the hosts: two of them can
not have that at once, whichever hosts are silent.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from ops.maybe import Answer
from ops.probing import Reply
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.holder import FILE, SILENT_SECONDS

BEAT_SECONDS = 10.0
_FILE = f"/{FILE}"
_FOLDER = _FILE.rpartition("/")[0]
# Letters of a mark that a person types.
_SHORT = 8
_TAKEN, _HELD, _GONE = "@@taken", "@@held", "@@released"
# A lock is another machine's text: its mark is a word of the script that breaks it, its run one of a command.
_HOLDER = {
    "run": re.compile(r"r\d{1,9}"),
    "verb": re.compile(r"[a-z][a-z -]{0,30}"),
    "user": checked_document.line,
    "machine": checked_document.line,
    "pid": checked_document.count,
    "since": checked_document.time,
    "mark": re.compile(r"[A-Za-z0-9]{1,64}"),
    "started": checked_document.line,
}


@dataclass(frozen=True)
class Holder:
    """Who holds it: a run and its verb, a process of a machine, since when (seconds since the epoch)."""

    run: str
    verb: str
    user: str
    machine: str
    pid: int
    since: float
    mark: str
    started: str = ""

    @property
    def token(self) -> str:
        """What names it to --break-lock: the run is a number per checkout, so where it runs, and its mark."""
        return f"{self.run}@{self.machine}:{self.mark[:_SHORT]}"

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%H:%M:%S UTC")
        return f"{self.run} {self.verb}, pid {self.pid} of {self.user} on {self.machine} since {since}"


@dataclass(frozen=True)
class Held:
    """A lock that was found, and seconds since its holder was heard of, by the clock of the host."""

    holder: Holder
    silent: float

    @property
    def stale(self) -> bool:
        """Whether the holder seems to be dead; its lock stays all the same."""
        return self.silent > SILENT_SECONDS

    def __str__(self) -> str:
        return f"{self.holder}" + (f", not heard of for {self.silent:.0f} s" if self.stale else "")


@dataclass(frozen=True)
class Own:
    """The lock of a run: its mark, the hosts that gave it, and how many were asked for it."""

    mark: str
    hosts: tuple[str, ...]
    asked: int


def mark() -> str:
    """Return what tells this holder from every other."""
    return uuid.uuid4().hex


def take(holder: Holder) -> str:
    """Return the script that takes the lock of a host, or prints who has it."""
    record = shlex.quote(json.dumps(asdict(holder)))
    return (
        f"mkdir -p {_FOLDER}\n"
        f"if (set -C; printf '%s\\n' {record} > {_FILE}) 2>/dev/null; then echo {_TAKEN}; else {look()}; fi"
    )


def look() -> str:
    """Return the script that prints the holder of a host's lock; nothing where the lock is free."""
    age = f"$(($(date +%s) - $(stat -c %Y {_FILE})))"
    return f'[ ! -e {_FILE} ] || {{ echo "{_HELD} {age}"; cat {_FILE}; }}'


def beat(own: str) -> str:
    """Return the script that says that the holder of this mark lives; it makes no lock that has gone."""
    return f"! grep -qsF -e {shlex.quote(own)} {_FILE} || touch -c {_FILE}"


def release(own: str) -> str:
    """Return the script that takes the lock of this mark away, and no other one."""
    return f"! grep -qsF -e {shlex.quote(own)} {_FILE} || rm -f {_FILE}; echo {_GONE}"


def broken(own: str) -> str:
    """Return the script that takes the lock of this mark away where its holder is still not heard of."""
    age = f"$(($(date +%s) - $(stat -c %Y {_FILE})))"
    return f'! grep -qsF {own} {_FILE} || [ "{age}" -le {SILENT_SECONDS:.0f} ] || rm -f {_FILE}; echo {_GONE}'


def refusal(answer: Answer[Reply]) -> str:
    """Return why a host did not give its lock."""
    return answer.why or f"{_FILE} names no holder, and can be removed"


def taken(answer: Answer[Reply]) -> bool:
    """Tell whether a host gave its lock."""
    return answer.value is not None and _TAKEN in answer.value.text


def held(answers: Mapping[str, Answer[Reply]]) -> dict[str, Held]:
    """Return by host whose lock is there; a file that cannot be read was never whole and counts as none."""
    found = {name: answer.then(_held) for name, answer in answers.items()}
    return {name: answer.value for name, answer in found.items() if answer.value is not None}


def lost(answers: Mapping[str, Answer[Reply]], own: Own) -> str:
    """Return why a lock is no longer its holder's, by the hosts that gave it; empty while it is.

    A run that was not heard of, as one of a laptop that slept, may have had its lock broken by another, which
    may have ended since. A host that does not answer counts as one that has the lock still.
    """
    found = held(answers)
    if others := {name: one for name, one in found.items() if one.holder.mark != own.mark}:
        name, other = next(iter(others.items()))
        return f"its lock was broken: {other} holds {name}"
    without = [name for name, answer in answers.items() if answer.known and name not in found]
    if 2 * (len(answers) - len(without)) > own.asked:
        return ""
    there = f"{len(without)} of {counted(own.asked, 'host')}"
    return f"its lock is gone from {there}: it was broken, or they have restarted"


def _held(reply: Reply) -> Held:
    lines = reply.text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(_HELD))
    record = checked_document.parse(lines[start + 1], "the lock")
    holder = checked_document.checked({"started": "", **record}, _HOLDER, "the lock")
    return Held(Holder(**{key: holder[key] for key in _HOLDER}), float(lines[start].split()[1]))
