"""Runs scripts on hosts over ssh, all at once, and hands on every line as it comes.

Nothing of it is left on a host: a script ends with its time, and with the connection that it was sent over.
"""

from __future__ import annotations

import logging
import re
import secrets
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from queue import Empty, Queue
from typing import IO, cast

from lakehouse.inventory import Host
from ops import hosts
from ops.maybe import Answer, unknown

_LOG = logging.getLogger(__name__)
# How `timeout` ends: what it has ended, and what it had to kill.
TIMED_OUT, _KILLED = 124, 137
# What a script has after it was told to end, and then ssh.
_GRACE_SECONDS = 2
# Readers wait here for a slow printer.
_LINES_AHEAD = 10_000
# A longer line comes in pieces: a cell of a table may be long, and what a host sends without end is no line.
_LINE_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16
# Of what a script complains of, what is kept to find out how it ended.
_COMPLAINTS = 100
# So often Ctrl-C is looked for.
_LOOK_SECONDS = 0.5
# Watches the other end of the connection while the script runs. What the script reads comes first, so many
# bytes of it; the connection's end is the end of what comes after. `timeout` ends the whole process group,
# but told to end before it has noted its child, it ends alone: so the group is told as well.
_GUARD = """\
given=$(head -c {size})
exec 3<&0
printf '%s' "$given" | timeout -k {grace} {limit} sh -c {script} 3<&- & ran=$!
{{ cat <&3; kill -s TERM -- "$ran" "-$ran"; }} >/dev/null 2>&1 & watch=$!
wait "$ran"; code=$?
kill "$watch" 2>/dev/null
echo "{mark} $code" >&2
exit "$code"
"""


@dataclass(frozen=True)
class Line:
    """What a host said, without the end of the line; `wrong` where it said it on stderr."""

    host: str
    text: str
    wrong: bool = False


Say = Callable[[Line], None]


def run(
    scripts: Mapping[str, str], chosen: Sequence[Host], say: Say, limit: float | None, given: str = ""
) -> dict[str, Answer[int]]:
    """Run the script of each chosen host, by its name, as root; return the exit code of each.

    A host that was not reached, or was lost on the way, is unknown for a reason. A script that takes longer
    than `limit` seconds ends with 124; without a limit it is ended by an exception, such as Ctrl-C. Every
    script reads `given` on stdin, and no argument list shows it.
    """
    mark = f"@@{secrets.token_hex(8)}"
    lines: Queue[Line | str] = Queue(_LINES_AHEAD)
    sent = {host.name: guarded(scripts[host.name], mark, limit, len(given.encode())) for host in chosen}
    with _started(chosen, sent, given, lines) as started:
        return _collected(started, mark, say, lines, limit)


@contextmanager
def output(
    host: Host, script: str, limit: float, given: str = ""
) -> Iterator[tuple[IO[bytes], Callable[[], Answer[int]]]]:
    """Run a script on a host as root; give what it writes as it is, and what tells how it ended.

    The script reads `given` on stdin. Nothing is read after the time is over, whatever the host does.
    """
    mark = f"@@{secrets.token_hex(8)}"
    said: deque[str] = deque(maxlen=_COMPLAINTS)
    argv = [*hosts.ssh(host), guarded(script, mark, limit, len(given.encode()))]
    # Ctrl-C on the terminal ends ssh as well: the reader here may be a thread, which no exception reaches.
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stdin, stdout, stderr = (
        cast("IO[bytes]", one) for one in (process.stdin, process.stdout, process.stderr)
    )
    threading.Thread(target=_give, args=(stdin, given), daemon=True).start()
    reader = threading.Thread(target=lambda: said.extend(_texts(stderr)), daemon=True)
    timer = threading.Timer(limit + hosts.CONNECT_SECONDS + 2 * _GRACE_SECONDS, process.kill)
    reader.start()
    timer.start()

    def ended() -> Answer[int]:
        while stdout.read(_CHUNK_BYTES):
            pass
        reader.join()
        # What the script says last may have no end of its line.
        codes = [code for line in said if (code := _code(line, mark)) is not None]
        return Answer(codes[0]) if codes else unknown(said[-1] if said else f"no end after {limit:g} s")

    try:
        yield stdout, ended
    finally:
        timer.cancel()
        _end([process])


def guarded(script: str, mark: str, limit: float | None, size: int = 0) -> str:
    """Return a script that runs another one as root within so many seconds, and ends with its connection.

    Its last line on stderr is the mark and the exit code: without it, it is unknown how it ended.
    """
    ended = _GUARD.format(
        size=size, grace=_GRACE_SECONDS, limit=limit or 0, script=shlex.quote(script), mark=mark
    )
    return hosts.as_root(ended)


@contextmanager
def _started(
    chosen: Sequence[Host], sent: Mapping[str, str], given: str, lines: Queue[Line | str]
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start ssh for each host; at the end none of them runs."""
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for host in chosen:
            # Ctrl-C on the terminal is for us: ssh ends when its scripts were told to.
            started[host.name] = subprocess.Popen(
                [*hosts.ssh(host), sent[host.name]], start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            threading.Thread(
                target=_read, args=(host.name, started[host.name], given, lines), daemon=True
            ).start()
        yield started
    finally:
        _end(started.values())


def _give(stdin: IO[bytes], given: str) -> None:
    """Write what a script reads, and leave it open: its end would be the script's."""
    with suppress(BrokenPipeError, ValueError):
        stdin.write(given.encode())
        stdin.flush()


def _read(name: str, process: subprocess.Popen[bytes], given: str, lines: Queue[Line | str]) -> None:
    """Hand on what a host says, and at the end its name alone."""
    stdin, stdout, stderr = (
        cast("IO[bytes]", one) for one in (process.stdin, process.stdout, process.stderr)
    )
    other = threading.Thread(target=_lines, args=(name, stderr, True, lines), daemon=True)
    other.start()
    _give(stdin, given)
    _lines(name, stdout, False, lines)
    other.join()
    process.wait()
    lines.put(name)


def _lines(name: str, stream: IO[bytes], wrong: bool, lines: Queue[Line | str]) -> None:
    for text in _texts(stream):
        lines.put(Line(name, text, wrong))


def _texts(stream: IO[bytes]) -> Iterator[str]:
    with suppress(ValueError):  # closed by what ended the process
        for line in iter(partial(stream.readline, _LINE_BYTES), b""):
            yield line.decode(errors="replace").rstrip("\r\n")


def _collected(
    started: Mapping[str, subprocess.Popen[bytes]],
    mark: str,
    say: Say,
    lines: Queue[Line | str],
    limit: float | None,
) -> dict[str, Answer[int]]:
    """Hand on lines until every host has ended, or its time is over."""
    codes: dict[str, int] = {}
    complaints: dict[str, str] = {}
    silent, began = set(started), time.monotonic()
    # A host's own clock ends the script; ours, what has not even begun or hangs.
    until = began + limit + hosts.CONNECT_SECONDS + 2 * _GRACE_SECONDS if limit else inf
    while silent and (left := until - time.monotonic()) > 0:
        try:
            found = lines.get(timeout=min(left, _LOOK_SECONDS))
        except Empty:
            continue
        if isinstance(found, str):
            silent.discard(found)
        elif found.wrong and (code := _code(found.text, mark)) is not None:
            # What the script says last may have no end of its line.
            if last := found.text.rpartition(mark)[0]:
                say(replace(found, text=last))
            late = limit is not None and time.monotonic() - began >= limit
            codes[found.host] = TIMED_OUT if late and code == _KILLED else code
        else:
            if found.wrong:
                complaints[found.host] = found.text
            say(found)
    answers = {
        name: Answer(codes[name])
        if name in codes
        else unknown(_why(name in silent, complaints.get(name), limit))
        for name in started
    }
    for name, answer in answers.items():
        how = f"exit code {answer.value}" if answer.known else answer.why
        _LOG.info("%s: %s after %.1f s", name, how, time.monotonic() - began)
    return answers


def _code(line: str, mark: str) -> int | None:
    """Return the exit code behind the mark of a line; None where there is none."""
    _, there, code = line.rpartition(mark)
    return int(code) if there and re.fullmatch(r" \d{1,3}", code, re.ASCII) else None


def _why(silent: bool, complaint: str | None, limit: float | None) -> str:
    if silent:
        return f"no end after {limit:g} s"
    return complaint or "the connection was lost"


def _end(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """End what still runs: scripts on hosts first, by the end of what they read, then ssh itself."""
    for process in processes:
        if process.stdin:
            with suppress(OSError):
                process.stdin.close()
    until = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
