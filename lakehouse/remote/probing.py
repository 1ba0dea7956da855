"""Send questions to a cluster through a worker process, all with one deadline."""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.remote.operations import Operation
from lakehouse.run import ROOT
from plugins.module_utils.lakehouse.probes import MOST_BYTES

_LOG = logging.getLogger(__name__)
# Reserved for reading and printing the answers.
_RESERVE_SECONDS = 0.4
# Minimum for the hosts, also when reading the inventory took the time.
_LEAST_SECONDS = 2.5
# Delay of a busy control machine beyond the timeout of a question.
_LATE_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Shell:
    """A script on a host; the answer is its output."""

    name: str
    host: str
    script: str
    kind: str = "shell"


@dataclass(frozen=True)
class Operations:
    """Operations on a host, in their order; the answer is the names of those that it differed from, as JSON.

    With `check` the host stays as it is.
    """

    name: str
    host: str
    operations: tuple[Operation, ...]
    check: bool = False
    kind: str = "operations"


@dataclass(frozen=True)
class Http:
    """A URL; the answer is its body, of at most `most` bytes."""

    name: str
    url: str
    headers: Mapping[str, str]
    most: int = MOST_BYTES
    kind: str = "http"


@dataclass(frozen=True)
class Thrift:
    """A call with at most one string argument; the answer is the string that it returns, if any."""

    name: str
    host: str
    port: int
    call: str
    argument: str | None = None
    kind: str = "thrift"


@dataclass(frozen=True)
class Sql:
    """A query of Trino's coordinator; the answer is its rows, as JSON."""

    name: str
    url: str
    user: str
    query: str
    kind: str = "sql"


@dataclass(frozen=True)
class Probe:
    """A readiness probe (module_utils/lakehouse/probes.py); the answer is whether it succeeds."""

    name: str
    probe: Mapping[str, Any]
    kind: str = "probe"


Question = Shell | Operations | Http | Thrift | Sql | Probe


@dataclass(frozen=True)
class Reply:
    """The text of an answer, and when the question was sent and answered, in seconds since the epoch."""

    text: str
    began: float
    ended: float


class Prober:
    """A worker for one request. It loads pyinfra while the inventory is read, so create it first."""

    def __init__(self) -> None:
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "lakehouse.remote.worker"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """End the worker, if it has not ended."""
        if self._worker.poll() is None:
            self._worker.kill()
            self._worker.communicate()

    def ask(
        self, hosts: Mapping[str, Mapping[str, Any]], questions: Sequence[Question], until: float
    ) -> dict[str, Answer[Reply]]:
        """Return the answer to each question by its name, by the deadline `until` (monotonic clock).

        The hosts have a minimum of time even if that exceeds the deadline.

        Raises LakehouseError where the worker fails.
        """
        seconds = max(_LEAST_SECONDS, until - time.monotonic() - _RESERVE_SECONDS)
        request = {
            "seconds": seconds,
            "hosts": hosts,
            "questions": [asdict(question) for question in questions],
        }
        try:
            output, errors = self._worker.communicate(
                json.dumps(request), timeout=seconds + _RESERVE_SECONDS / 2
            )
        except subprocess.TimeoutExpired:
            self._worker.kill()
            output, errors = self._worker.communicate()
        answers = parse_answers(output)
        if self._worker.returncode > 0:
            raise LakehouseError(
                f"pyinfra has failed: {errors.strip().splitlines()[-1]}", "scripts/bootstrap"
            )
        no_answer: Answer[Reply] = unknown(f"no answer in {seconds:.1f} s")
        return {question.name: answers.get(question.name, no_answer) for question in questions}


class Session:
    """A worker for many requests, whose connections to hosts stay open."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        self._hosts = hosts
        self._repeated: dict[str, Any] = {}
        self._start()

    def _start(self) -> None:
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "lakehouse.remote.worker"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            # Ctrl-C must not reach the worker: the verb still has to clean up.
            start_new_session=True,
        )  # fmt: skip
        self._rest = b""
        # Repeated scripts of the previous worker are sent with the next request.
        self._repeat_pending = bool(self._repeated)

    def close(self) -> None:
        """End the worker, and its repeated scripts."""
        self._worker.kill()
        self._worker.wait()

    def ask(self, questions: Sequence[Question], seconds: float) -> dict[str, Answer[Reply]]:
        """Return the answer to each question by its name, with a timeout."""
        return self._request({"questions": [asdict(question) for question in questions]}, seconds)

    def repeat(self, scripts: Sequence[Shell], pause: float) -> None:
        """Run these scripts every `pause` seconds from now on, in place of earlier ones."""
        self._repeated = {"repeat": [asdict(script) for script in scripts], "pause": pause}
        self._repeat_pending = True
        self._request({"questions": []}, pause)

    def _request(self, request: Mapping[str, Any], seconds: float) -> dict[str, Answer[Reply]]:
        try:
            return self._answers(request, seconds)
        except BaseException:
            # The worker handles requests in order: the next would wait for this abandoned one, as the release
            # of a lock after Ctrl-C would for the balancer.
            self.close()
            self._start()
            raise

    def _answers(self, request: Mapping[str, Any], seconds: float) -> dict[str, Answer[Reply]]:
        stdin, names = self._worker.stdin, {question["name"] for question in request["questions"]}
        repeated = self._repeated if self._repeat_pending else {}
        line = json.dumps({"seconds": seconds, "hosts": self._hosts, **repeated, **request})
        assert stdin is not None  # noqa: S101 -- a pipe was requested
        try:
            stdin.write(f"{line}\n".encode())
            stdin.flush()
        except OSError as error:
            raise LakehouseError(f"pyinfra has ended: {error}", "scripts/bootstrap") from error
        self._repeat_pending = False
        answers: dict[str, Answer[Reply]] = {}
        until = time.monotonic() + seconds + _LATE_SECONDS
        while names - answers.keys():
            answers |= parse_answers(self._lines(until))
        return answers

    def _lines(self, until: float) -> str:
        """Return complete lines of the worker; LakehouseError where it no longer answers."""
        stdout = self._worker.stdout
        assert stdout is not None  # noqa: S101 -- a pipe was requested
        ready, _, _ = select.select([stdout], [], [], max(0.0, until - time.monotonic()))
        chunk = os.read(stdout.fileno(), _CHUNK_BYTES) if ready else b""
        if not chunk:
            raise LakehouseError("pyinfra does not answer any more", "scripts/bootstrap")
        lines, newline, self._rest = (self._rest + chunk).rpartition(b"\n")
        return (lines + newline).decode()


def parse_answers(output: str) -> dict[str, Answer[Reply]]:
    """Parse the worker's lines; an incomplete last one is ignored."""
    answers: dict[str, Answer[Reply]] = {}
    for line in output.splitlines(keepends=True):
        if line.endswith("\n"):
            row = json.loads(line)
            reply = Reply(str(row["value"]), float(row["began"]), float(row["ended"]))
            answers[row["name"]] = unknown(row["why"]) if row["why"] else Answer(reply)
            _LOG.debug("%s: %s after %.1f s", row["name"], row["why"] or "answer", reply.ended - reply.began)
    return answers
