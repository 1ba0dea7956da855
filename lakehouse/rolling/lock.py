"""The lock of a cluster: a file on each host with the run that holds it, touched while that run lives.

It is in /run, so a reboot removes it. A run needs it on more than half of the hosts, so that two runs cannot
hold it at once, whichever hosts are unreachable.
"""

from __future__ import annotations

import json
import re
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from lakehouse.maybe import Answer
from lakehouse.remote.probing import Reply
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.counting import counted
from plugins.module_utils.lakehouse.holder import FILE, SILENT_SECONDS

BEAT_SECONDS = 10.0
_FILE = f"/{FILE}"
_FOLDER = _FILE.rpartition("/")[0]
# Letters of a mark in a token that an operator types.
_SHORT = 8
_TAKEN, _HELD, _GONE = "@@taken", "@@held", "@@released"
# Other machines write locks: the mark goes into the script that breaks one, the run into a command.
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
    """The holder of a lock: a run and its verb, its process and machine, and since when (epoch seconds)."""

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
        """The argument of --break-lock. Numbers of runs are per checkout, so it has machine and mark, too."""
        return f"{self.run}@{self.machine}:{self.mark[:_SHORT]}"

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%H:%M:%S UTC")
        return f"{self.run} {self.verb}, pid {self.pid} of {self.user} on {self.machine} since {since}"


@dataclass(frozen=True)
class HostLock:
    """The lock of a host, and the seconds since its holder touched it, by the host's clock."""

    holder: Holder
    silent: float

    @property
    def stale(self) -> bool:
        """Whether the holder seems to be dead; its lock stays until it is broken."""
        return self.silent > SILENT_SECONDS

    def __str__(self) -> str:
        return f"{self.holder}" + (f", not heard of for {self.silent:.0f} s" if self.stale else "")


@dataclass(frozen=True)
class OwnLock:
    """The lock of a run: its mark, the hosts that granted it, and the number of hosts in the cluster."""

    mark: str
    hosts: tuple[str, ...]
    total: int


def mark() -> str:
    """Return a unique mark for a holder."""
    return uuid.uuid4().hex


def take(holder: Holder) -> str:
    """Return the script that takes the lock of a host, or prints its holder."""
    record = shlex.quote(json.dumps(asdict(holder)))
    return (
        f"mkdir -p {_FOLDER}\n"
        f"if (set -C; printf '%s\\n' {record} > {_FILE}) 2>/dev/null; then echo {_TAKEN}; else {look()}; fi"
    )


def look() -> str:
    """Return the script that prints the holder of a host's lock; nothing where the lock is free."""
    age = f"$(($(date +%s) - $(stat -c %Y {_FILE})))"
    return f'[ ! -e {_FILE} ] || {{ echo "{_HELD} {age}"; cat {_FILE}; }}'


def beat(mark: str) -> str:
    """Return the script that touches the lock of this mark; it does not create a lock."""
    return f"! grep -qsF -e {shlex.quote(mark)} {_FILE} || touch -c {_FILE}"


def release(mark: str) -> str:
    """Return the script that removes the lock of this mark, and no other."""
    return f"! grep -qsF -e {shlex.quote(mark)} {_FILE} || rm -f {_FILE}; echo {_GONE}"


def break_stale(mark: str) -> str:
    """Return the script that removes the lock of this mark while it is stale."""
    age = f"$(($(date +%s) - $(stat -c %Y {_FILE})))"
    return (
        f'! grep -qsF {mark} {_FILE} || [ "{age}" -le {SILENT_SECONDS:.0f} ] || rm -f {_FILE}; echo {_GONE}'
    )


def refusal(answer: Answer[Reply]) -> str:
    """Return why a host did not grant its lock."""
    return answer.why or f"{_FILE} names no holder, and can be removed"


def is_taken(answer: Answer[Reply]) -> bool:
    """Return whether a host granted its lock."""
    return answer.value is not None and _TAKEN in answer.value.text


def locks(answers: Mapping[str, Answer[Reply]]) -> dict[str, HostLock]:
    """Return the locks by host; an invalid file was never complete, and counts as none."""
    parsed = {name: answer.then(_held) for name, answer in answers.items()}
    return {name: answer.value for name, answer in parsed.items() if answer.value is not None}


def loss(answers: Mapping[str, Answer[Reply]], own_lock: OwnLock) -> str:
    """Return why a run has lost its lock, by the hosts that granted it; empty while it holds it.

    While a run did not touch its lock, as on a laptop that slept, another run may have broken it. A host that
    does not answer counts as one that still has the lock.
    """
    host_locks = locks(answers)
    if foreign := {name: lock for name, lock in host_locks.items() if lock.holder.mark != own_lock.mark}:
        name, lock = next(iter(foreign.items()))
        return f"its lock was broken: {lock} holds {name}"
    missing = [name for name, answer in answers.items() if answer.known and name not in host_locks]
    if 2 * (len(answers) - len(missing)) > own_lock.total:
        return ""
    share = f"{len(missing)} of {counted(own_lock.total, 'host')}"
    return f"its lock is gone from {share}: it was broken, or they have restarted"


def _held(reply: Reply) -> HostLock:
    lines = reply.text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(_HELD))
    record = checked_document.parse(lines[start + 1], "the lock")
    holder = checked_document.checked({"started": "", **record}, _HOLDER, "the lock")
    return HostLock(Holder(**{key: holder[key] for key in _HOLDER}), float(lines[start].split()[1]))
