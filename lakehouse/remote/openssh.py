"""Run scripts on hosts over ssh, in parallel, and pass on each line as it arrives.

No process stays on a host: a script ends with its timeout, or with its connection.
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

from lakehouse.maybe import Answer, unknown
from lakehouse.model.inventory import Host
from lakehouse.remote import hosts

_LOG = logging.getLogger(__name__)
# Exit codes of `timeout`: after SIGTERM, and after SIGKILL.
TIMED_OUT, _KILLED = 124, 137
# Seconds for a script after SIGTERM, and then for ssh.
_GRACE_SECONDS = 2
# Readers block here while the output is slow.
_LINES_AHEAD = 10_000
# A longer line is split: cells of tables may be long, but a line may not grow without limit.
_LINE_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16
# Last lines of stderr that are kept to find the exit code.
_COMPLAINTS = 100
# Interval of checks for Ctrl-C.
_LOOK_SECONDS = 0.5
# Watches the connection while the script runs. The input of the script comes first, with its size; end of
# file after it means that the connection has ended. `timeout` signals its process group, but not if it gets
# SIGTERM before it has started its child: so the group is signalled, too.
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
    """A line of a host without its line end; `wrong` for stderr."""

    host: str
    text: str
    wrong: bool = False


Say = Callable[[Line], None]


def run(
    scripts: Mapping[str, str], chosen: Sequence[Host], say: Say, limit: float | None, input_text: str = ""
) -> dict[str, Answer[int]]:
    """Run the script of each chosen host, by its name, as root; return the exit code of each.

    Without a connection the exit code is unknown. A script that takes longer than `limit` seconds ends with
    124; without a limit only an exception ends it, such as Ctrl-C. Every script reads `input_text` on stdin,
    so that it is in no argument list.
    """
    mark = f"@@{secrets.token_hex(8)}"
    lines: Queue[Line | str] = Queue(_LINES_AHEAD)
    guarded_scripts = {
        host.name: guarded(scripts[host.name], mark, limit, len(input_text.encode())) for host in chosen
    }
    with _processes(chosen, guarded_scripts, input_text, lines) as processes:
        return _exit_codes(processes, mark, say, lines, limit)


@contextmanager
def output(
    host: Host, script: str, limit: float, input_text: str = ""
) -> Iterator[tuple[IO[bytes], Callable[[], Answer[int]]]]:
    """Run a script on a host as root; yield its stdout, and a function that returns its exit code.

    The script reads `input_text` on stdin. Reading ends with the timeout, whatever the host does.
    """
    mark = f"@@{secrets.token_hex(8)}"
    errors: deque[str] = deque(maxlen=_COMPLAINTS)
    argv = [*hosts.ssh(host), guarded(script, mark, limit, len(input_text.encode()))]
    # Ctrl-C on the terminal ends ssh as well, since no exception reaches a reader in a thread.
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stdin, stdout, stderr = (
        cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)
    )
    threading.Thread(target=_give, args=(stdin, input_text), daemon=True).start()
    reader = threading.Thread(target=lambda: errors.extend(_texts(stderr)), daemon=True)
    timer = threading.Timer(limit + hosts.CONNECT_SECONDS + 2 * _GRACE_SECONDS, process.kill)
    reader.start()
    timer.start()

    def exit_code() -> Answer[int]:
        while stdout.read(_CHUNK_BYTES):
            pass
        reader.join()
        # The last line of the script may lack its line end.
        codes = [code for line in errors if (code := _code(line, mark)) is not None]
        return Answer(codes[0]) if codes else unknown(errors[-1] if errors else f"no end after {limit:g} s")

    try:
        yield stdout, exit_code
    finally:
        timer.cancel()
        _end([process])


def guarded(script: str, mark: str, limit: float | None, size: int = 0) -> str:
    """Return a script that runs another one as root, with a timeout, and ends with its connection.

    Its last line on stderr is the mark and the exit code; without that line the exit code is unknown.
    """
    guarded_script = _GUARD.format(
        size=size, grace=_GRACE_SECONDS, limit=limit or 0, script=shlex.quote(script), mark=mark
    )
    return hosts.as_root(guarded_script)


@contextmanager
def _processes(
    chosen: Sequence[Host], guarded_scripts: Mapping[str, str], input_text: str, lines: Queue[Line | str]
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Start ssh for each host, and end all of them on exit."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for host in chosen:
            # Ctrl-C on the terminal must not reach ssh, which ends after its scripts were ended.
            processes[host.name] = subprocess.Popen(
                [*hosts.ssh(host), guarded_scripts[host.name]], start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            threading.Thread(
                target=_read, args=(host.name, processes[host.name], input_text, lines), daemon=True
            ).start()
        yield processes
    finally:
        _end(processes.values())


def _give(stdin: IO[bytes], input_text: str) -> None:
    """Write the input of a script, and leave the pipe open: closing it ends the script."""
    with suppress(BrokenPipeError, ValueError):
        stdin.write(input_text.encode())
        stdin.flush()


def _read(name: str, process: subprocess.Popen[bytes], input_text: str, lines: Queue[Line | str]) -> None:
    """Queue the lines of a host, and at its end its name."""
    stdin, stdout, stderr = (
        cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)
    )
    error_reader = threading.Thread(target=_lines, args=(name, stderr, True, lines), daemon=True)
    error_reader.start()
    _give(stdin, input_text)
    _lines(name, stdout, False, lines)
    error_reader.join()
    process.wait()
    lines.put(name)


def _lines(name: str, stream: IO[bytes], wrong: bool, lines: Queue[Line | str]) -> None:
    for text in _texts(stream):
        lines.put(Line(name, text, wrong))


def _texts(stream: IO[bytes]) -> Iterator[str]:
    with suppress(ValueError):  # closed by what ended the process
        for line in iter(partial(stream.readline, _LINE_BYTES), b""):
            yield line.decode(errors="replace").rstrip("\r\n")


def _exit_codes(
    processes: Mapping[str, subprocess.Popen[bytes]],
    mark: str,
    say: Say,
    lines: Queue[Line | str],
    limit: float | None,
) -> dict[str, Answer[int]]:
    """Pass on lines until every host has ended or timed out; return the exit codes."""
    codes: dict[str, int] = {}
    complaints: dict[str, str] = {}
    silent, began = set(processes), time.monotonic()
    # The host enforces the timeout of a script; this one is for hosts that hang, or never started it.
    until = began + limit + hosts.CONNECT_SECONDS + 2 * _GRACE_SECONDS if limit else inf
    while silent and (remaining := until - time.monotonic()) > 0:
        try:
            event = lines.get(timeout=min(remaining, _LOOK_SECONDS))
        except Empty:
            continue
        if isinstance(event, str):
            silent.discard(event)
        elif event.wrong and (code := _code(event.text, mark)) is not None:
            # The last line of the script may lack its line end.
            if rest := event.text.rpartition(mark)[0]:
                say(replace(event, text=rest))
            late = limit is not None and time.monotonic() - began >= limit
            codes[event.host] = TIMED_OUT if late and code == _KILLED else code
        else:
            if event.wrong:
                complaints[event.host] = event.text
            say(event)
    answers = {
        name: Answer(codes[name])
        if name in codes
        else unknown(_why(name in silent, complaints.get(name), limit))
        for name in processes
    }
    for name, answer in answers.items():
        ending = f"exit code {answer.value}" if answer.known else answer.why
        _LOG.info("%s: %s after %.1f s", name, ending, time.monotonic() - began)
    return answers


def _code(line: str, mark: str) -> int | None:
    """Return the exit code after the mark in a line; None without one."""
    _, mark_seen, code = line.rpartition(mark)
    return int(code) if mark_seen and re.fullmatch(r" \d{1,3}", code, re.ASCII) else None


def _why(silent: bool, complaint: str | None, limit: float | None) -> str:
    if silent:
        return f"no end after {limit:g} s"
    return complaint or "the connection was lost"


def _end(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """End the processes: scripts on hosts first, by closing their input, then ssh."""
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
