"""Output of commands that run scripts on hosts: lines of hosts, progress, and the last line."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Collection, Mapping

from lakehouse.errors import LakehouseError
from lakehouse.log import PRINTED
from lakehouse.maybe import Answer
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import hosts
from lakehouse.remote.openssh import Line
from lakehouse.terminal import LINES, printable


class Lines:
    """Print each line as it arrives, after its host's name where there are several hosts.

    Control characters are escaped for a terminal only.
    """

    def __init__(self, hosts: Collection[str]) -> None:
        self._width = max(map(len, hosts)) if len(hosts) > 1 else 0

    def __call__(self, line: Line) -> None:
        """Print a line of stdout on stdout, one of stderr on stderr."""
        stream = sys.stderr if line.wrong else sys.stdout
        head = f"{line.host.ljust(self._width)} | " if self._width else ""
        text = printable(line.text, keep=LINES) if stream.isatty() else line.text
        stream.write(f"{head}{text}\n")
        stream.flush()


class CapturedLines:
    """Capture the lines of each host, for programs."""

    def __init__(self, hosts: Collection[str], most: int = 1 << 30) -> None:
        """`most` is the limit of characters per host."""
        self.lines: dict[str, list[Line]] = {host: [] for host in hosts}
        self._remaining, self._most = dict.fromkeys(hosts, most), most

    def __call__(self, line: Line) -> None:
        """Keep a line; LakehouseError where a host exceeds the limit."""
        self._remaining[line.host] -= len(line.text) + 1
        if self._remaining[line.host] < 0:
            raise LakehouseError(f"{line.host} says more than {self._most >> 20} MiB", "ask for less of it")
        self.lines[line.host].append(line)

    def of(self, host: str, *, wrong: bool) -> list[str]:
        """Return the lines of a host on stdout, or on stderr."""
        return [line.text for line in self.lines[host] if line.wrong is wrong]


def progress(text: str) -> None:
    """Print and log progress, on stderr."""
    logging.getLogger(PRINTED).info("%s", text)
    sys.stderr.write(f"{printable(text, keep=LINES)}\n")
    sys.stderr.flush()


def silent(verb: str, inventory: object, answers: Mapping[str, Answer[int]]) -> tuple[Finding, ...]:
    """Return a finding for each host that did not answer; DOWN where none did."""
    outcome = Outcome.DEGRADED if any(answer.known for answer in answers.values()) else Outcome.DOWN
    return tuple(
        Finding(f"{verb}.silent", outcome, host, f"did not answer: {answer.why}", hosts.ping(inventory, host))
        for host, answer in answers.items()
        if not answer.known
    )


def end(result: Result, *, as_json: bool) -> int:
    """Print findings and last line to stderr, or all as JSON to stdout; return the exit code."""
    if as_json:
        sys.stdout.write(f"{json.dumps(result.json())}\n")
    else:
        for line in (*map(str, result.worst), result.last_line):
            progress(line)
    return int(result.outcome)
