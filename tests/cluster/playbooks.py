"""Ansible as a person runs it, and what came out."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakehouse.run import ROOT, program

# Longer than any converge of a test: what hangs shall fail.
_SECONDS = 600
_SHOWN_LINES = 60


@dataclass(frozen=True, repr=False)
class Outcome:
    """How a run ended. In an assertion's message it shows the end of the output."""

    code: int
    output: str

    def __repr__(self) -> str:
        return "\n".join([f"exit {self.code}", *self.output.splitlines()[-_SHOWN_LINES:]])

    @property
    def text(self) -> str:
        """The output in one line, without the quotes that YAML doubles."""
        return " ".join(self.output.replace("''", "'").split())

    @property
    def changed(self) -> int:
        """How many tasks changed something, over all hosts."""
        return sum(int(number) for number in re.findall(r"\bchanged=(\d+)", self.output))


class Ansible:
    """Runs against one inventory, from the repository's root."""

    def __init__(self, inventory: str) -> None:
        self.inventory = inventory

    def playbook(self, name: str, *options: str, **variables: object) -> Outcome:
        """Run `playbooks/<name>.yml` (or another file, by its path) with extra variables."""
        path = name if name.endswith(".yml") else f"playbooks/{name}.yml"
        extra = ["-e", json.dumps(variables)] if variables else []
        return self._run("ansible-playbook", path, *options, *extra)

    def module(
        self, host: str, name: str, arguments: Mapping[str, object], options: Sequence[str] = ()
    ) -> Outcome:
        """Call one module on one host as root."""
        return self._run("ansible", host, "--become", "-m", name, "-a", json.dumps(arguments), *options)

    def _run(self, command: str, *arguments: str) -> Outcome:
        done = subprocess.run(
            [program(command), "-i", self.inventory, *arguments],
            cwd=ROOT, env={**os.environ, "ANSIBLE_FORCE_COLOR": "0", "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout)
