"""The verbs that change the cluster, as a person starts them, and what tells whether they did."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lakehouse.model.inventory import Host, Inventory
from lakehouse.run import ROOT
from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests import pages
from tests.cluster.machines import Machine, Machines

SECONDS = 600
# Without them nothing answers at all.
NEEDED = {"namenode", "metastore", "postgresql"}


_PROGRAM = (sys.executable, "-m", "lakehouse.cli")


def replaceable(cluster: Inventory) -> Host:
    """Return the DataNode's host with the fewest services that run nowhere else."""
    roles = {host.name: host.groups for host in cluster.group("datanodes")}
    alone = {name for name in set().union(*roles.values()) if len(cluster.group(name)) == 1}
    return min(cluster.group("datanodes"), key=lambda host: len(alone & host.groups))


class Terminal:
    """A program in a terminal, whose questions are answered."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv, self._text = argv, ""
        self.code: int | None = None

    def __enter__(self) -> Terminal:
        self._own, its = pty.openpty()
        self._process = subprocess.Popen(
            self._argv,
            cwd=ROOT,
            stdin=its,
            stdout=its,
            stderr=its,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        os.close(its)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._own)

    def until(self, words: str) -> None:
        """Return once it has said some words; AssertionError where it ends before."""
        while words not in self._text:
            assert self._read(), self._text

    def answered(self, line: str) -> str:
        """Answer it; return all that it has said at its end, whose code is `code` then."""
        os.write(self._own, f"{line}\n".encode())
        while self._read():
            pass
        self.code = self._process.wait(timeout=SECONDS)
        return self._text

    def _read(self) -> bool:
        readable, _, _ = select.select([self._own], [], [], SECONDS)
        assert readable, self._text
        try:
            said = os.read(self._own, 65536)
        except OSError:  # the other end is closed
            return False
        self._text += said.decode(errors="replace")
        return bool(said)


class Verb:
    """The command line, on one inventory."""

    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        with self.started(*words) as process:
            out, err = process.communicate(timeout=SECONDS)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words: str) -> Any:
        """Return what the verb, which has to succeed, says to programs."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def committed(self, *words: str) -> str:
        """Keep the catalog of the cluster; return the commit's id."""
        return str(self.json("catalog", "commit", *words)["commit"])

    def asked(self, *words: str) -> Terminal:
        """Return a terminal in which the verb asks a person."""
        return Terminal([*_PROGRAM, *words, "-i", self.path])

    def started(self, *words: str) -> subprocess.Popen[str]:
        argv = [*_PROGRAM, *words, "-i", self.path]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def line_with(words: str, process: subprocess.Popen[str]) -> str:
    """Return the next line of a verb's progress that has these words; a verb that ends before it says why."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        if words in line:
            return line
        seen.append(line)
    out = process.communicate(timeout=SECONDS)[0]
    raise AssertionError(f"no line with {words!r}:\n{''.join(seen)}{out}")


def runbook(name: str, **words: str) -> list[list[str]]:
    """Return the commands of a procedure in docs/operations, with other words in place of some."""
    lines = [line for block in pages.runbook(name) for line in block.splitlines()]
    found = [
        shlex.split(line.removeprefix(".venv/bin/lakehouse ").partition(" -i inventory/local")[0])
        + shlex.split(line.partition(" -i inventory/local")[2], comments=True)
        for line in lines
        if line.startswith(".venv/bin/lakehouse ")
    ]
    return [[words.get(word, word) for word in command] for command in found]


@contextmanager
def stopped(machine: Machine, unit: str) -> Iterator[None]:
    machine.run("systemctl stop %s", unit)
    try:
        yield
    finally:
        machine.run("systemctl start %s", unit)


def unit_of(machine: Machine, pattern: str) -> str:
    """The unit behind a pattern, with its suffix: Debian's `postgresql` has stopped before its server has."""
    return machine.run("systemctl list-units --plain --no-legend %s | cut -d ' ' -f 1", pattern).strip()


def follower(cluster: Inventory) -> Host:
    """A DataNode whose host no other service needs."""
    return next(host for host in reversed(cluster.group("datanodes")) if not NEEDED & host.groups)


def starts(cluster: Inventory, machines: Machines, unit: str, group: str) -> dict[str, str]:
    shown = "systemctl show --property=InvocationID --value %s"
    return {host.name: machines[host.name].run(shown, unit) for host in cluster.group(group)}


def answers(verb: Verb) -> None:
    """Wait for a metastore whose database was away."""
    wait_for("the metastore", lambda: verb.run("metastore", "check").returncode == 0, seconds=60)


def healed(namenode: NameNode) -> None:
    wait_for("every block has its replicas", lambda: not namenode.lacking(), seconds=120)
