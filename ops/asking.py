"""Puts questions to a cluster through the child, all of them with one deadline."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.run import ROOT
from ops.answer import Answer, unknown

# Of the time that is left, what reading and showing the answers takes.
_RESERVE_SECONDS = 0.4
# A control machine that is too busy to read its inventory is no reason to call hosts silent.
_LEAST_SECONDS = 2.5


@dataclass(frozen=True)
class Shell:
    """A script, of which is asked what it prints on a host."""

    name: str
    host: str
    script: str
    kind: str = "shell"


@dataclass(frozen=True)
class Http:
    """An address, of which is asked what is there."""

    name: str
    url: str
    headers: Mapping[str, str]
    kind: str = "http"


@dataclass(frozen=True)
class Thrift:
    """A call without arguments, of which is asked whether it returns."""

    name: str
    host: str
    port: int
    call: str
    kind: str = "thrift"


Question = Shell | Http | Thrift


@dataclass(frozen=True)
class Reply:
    """What came back, and the seconds since the epoch between which it was asked and answered."""

    text: str
    began: float
    ended: float


class Asker:
    """One child. It loads pyinfra while the inventory is being read, so it is made first."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ops.child"], cwd=ROOT, text=True,
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


def answered(said: str) -> dict[str, Answer[Reply]]:
    """Read the child's lines; the last may have been cut off."""
    answers: dict[str, Answer[Reply]] = {}
    for line in said.splitlines(keepends=True):
        if line.endswith("\n"):
            one = json.loads(line)
            reply = Reply(str(one["value"]), float(one["began"]), float(one["ended"]))
            answers[one["name"]] = unknown(one["why"]) if one["why"] else Answer(reply)
    return answers
