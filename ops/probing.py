"""Puts questions to a cluster through the child, all of them with one deadline."""

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
from lakehouse.run import ROOT
from ops.maybe import Answer, unknown
from plugins.module_utils.lakehouse.probes import MOST_BYTES

_LOG = logging.getLogger(__name__)
# Of the time that is left, what reading and showing the answers takes.
_RESERVE_SECONDS = 0.4
# A control machine that is too busy to read its inventory is no reason to call hosts silent.
_LEAST_SECONDS = 2.5
# What a busy control machine may take beyond the limit of a question.
_LATE_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class Shell:
    """A script, of which is asked what it prints on a host."""

    name: str
    host: str
    script: str
    kind: str = "shell"


@dataclass(frozen=True)
class Http:
    """An address, of which is asked what is there: at most so many bytes."""

    name: str
    url: str
    headers: Mapping[str, str]
    most: int = MOST_BYTES
    kind: str = "http"


@dataclass(frozen=True)
class Thrift:
    """A call with at most one argument, a text, of which is asked the text that it returns, if any."""

    name: str
    host: str
    port: int
    call: str
    argument: str | None = None
    kind: str = "thrift"


@dataclass(frozen=True)
class Sql:
    """A query of Trino's coordinator, of which are asked the rows, as JSON."""

    name: str
    url: str
    user: str
    query: str
    kind: str = "sql"


@dataclass(frozen=True)
class Probe:
    """What a play waits for (module_utils/lakehouse/probes.py), of which is asked whether it is so."""

    name: str
    probe: Mapping[str, Any]
    kind: str = "probe"


Question = Shell | Http | Thrift | Sql | Probe


@dataclass(frozen=True)
class Reply:
    """What came back, and the seconds since the epoch between which it was asked and answered."""

    text: str
    began: float
    ended: float


class Prober:
    """One child. It loads pyinfra while the inventory is being read, so it is made first."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ops.worker"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """End the child; nothing happens if it has ended."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.communicate()

    def ask(
        self, hosts: Mapping[str, Mapping[str, Any]], questions: Sequence[Question], until: float
    ) -> dict[str, Answer[Reply]]:
        """Return an answer to every question by its name, at `until` (of the monotonic clock) at the latest.

        Later only where hardly any time was left for others when it was called.

        Raises LakehouseError where the child itself fails.
        """
        seconds = max(_LEAST_SECONDS, until - time.monotonic() - _RESERVE_SECONDS)
        request = {"seconds": seconds, "hosts": hosts, "questions": [asdict(one) for one in questions]}
        try:
            said, trouble = self._child.communicate(
                json.dumps(request), timeout=seconds + _RESERVE_SECONDS / 2
            )
        except subprocess.TimeoutExpired:
            self._child.kill()
            said, trouble = self._child.communicate()
        answers = answered(said)
        if self._child.returncode > 0:
            raise LakehouseError(
                f"pyinfra has failed: {trouble.strip().splitlines()[-1]}", "scripts/bootstrap"
            )
        silence: Answer[Reply] = unknown(f"no answer in {seconds:.1f} s")
        return {one.name: answers.get(one.name, silence) for one in questions}


class Session:
    """A child that stays: hosts are asked again and again over the same connections."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        self._hosts = hosts
        self._repeated: dict[str, Any] = {}
        self._start()

    def _start(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ops.worker"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            # Ctrl-C is for the verb, which still has something to put back.
            start_new_session=True,
        )  # fmt: skip
        self._rest = b""
        # What another child was to repeat, this one has yet to be told.
        self._untold = bool(self._repeated)

    def close(self) -> None:
        """End the child, and what it repeats."""
        self._child.kill()
        self._child.wait()

    def ask(self, questions: Sequence[Question], seconds: float) -> dict[str, Answer[Reply]]:
        """Return an answer to every question by its name, after so many seconds at the latest."""
        return self._request({"questions": [asdict(one) for one in questions]}, seconds)

    def repeat(self, scripts: Sequence[Shell], pause: float) -> None:
        """Run these every `pause` seconds from now on, beside what is asked, and no others."""
        self._repeated = {"repeat": [asdict(one) for one in scripts], "pause": pause}
        self._untold = True
        self._request({"questions": []}, pause)

    def _request(self, request: Mapping[str, Any], seconds: float) -> dict[str, Answer[Reply]]:
        try:
            return self._answers(request, seconds)
        except BaseException:
            # The child takes one request after the other: the next would wait for what has lost its caller,
            # as the release of a lock behind a balancer that Ctrl-C has ended here.
            self.close()
            self._start()
            raise

    def _answers(self, request: Mapping[str, Any], seconds: float) -> dict[str, Answer[Reply]]:
        stdin, names = self._child.stdin, {one["name"] for one in request["questions"]}
        told = self._repeated if self._untold else {}
        line = json.dumps({"seconds": seconds, "hosts": self._hosts, **told, **request})
        assert stdin is not None  # noqa: S101 -- it was asked for
        try:
            stdin.write(f"{line}\n".encode())
            stdin.flush()
        except OSError as error:
            raise LakehouseError(f"pyinfra has ended: {error}", "scripts/bootstrap") from error
        self._untold = False
        answers: dict[str, Answer[Reply]] = {}
        until = time.monotonic() + seconds + _LATE_SECONDS
        while names - answers.keys():
            answers |= answered(self._lines(until))
        return answers

    def _lines(self, until: float) -> str:
        """Return what the child said, whole lines of it; LakehouseError where it says nothing any more."""
        stdout = self._child.stdout
        assert stdout is not None  # noqa: S101 -- it was asked for
        ready, _, _ = select.select([stdout], [], [], max(0.0, until - time.monotonic()))
        said = os.read(stdout.fileno(), _CHUNK_BYTES) if ready else b""
        if not said:
            raise LakehouseError("pyinfra does not answer any more", "scripts/bootstrap")
        lines, newline, self._rest = (self._rest + said).rpartition(b"\n")
        return (lines + newline).decode()


def answered(said: str) -> dict[str, Answer[Reply]]:
    """Read the child's lines; the last may have been cut off."""
    answers: dict[str, Answer[Reply]] = {}
    for line in said.splitlines(keepends=True):
        if line.endswith("\n"):
            one = json.loads(line)
            reply = Reply(str(one["value"]), float(one["began"]), float(one["ended"]))
            answers[one["name"]] = unknown(one["why"]) if one["why"] else Answer(reply)
            _LOG.debug("%s: %s after %.1f s", one["name"], one["why"] or "answer", reply.ended - reply.began)
    return answers
