"""Run programs of the verbs, such as Ansible and pytest, each with its own log."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lakehouse.errors import LakehouseError

_LOG = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
LOGS = BUILD / "log"
# Below the root: the bill of materials.
BILL = "versions.yml"
SHOWN_LINES = 40
# A finding of validation or preflight that ends no run.
WARNING = re.compile(r"^WARN [a-z_]+\.[a-z_]+ .*$", re.MULTILINE)
# A host's line of the recap; what a task prints looks otherwise.
CHANGED = re.compile(r"^\S+\s+: ok=\d+\s+changed=(\d+)", re.MULTILINE)


def program(name: str) -> str:
    """The path of a program of our own Python environment."""
    return str(Path(sys.executable).with_name(name))


def logged(argv: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program from the repository's root, write its output to ``log`` and return it.

    Raises LakehouseError with the end of the output where the program fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as stream:
        process = subprocess.run(
            argv, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})}, check=False,
        )  # fmt: skip
    _ended(argv, process.returncode, began)
    output = log.read_text(encoding="utf-8")
    if process.returncode:
        last_lines = "\n".join(output.splitlines()[-SHOWN_LINES:])
        raise LakehouseError(
            f"{last_lines}\n{Path(argv[0]).name} failed (exit {process.returncode})", f"less {log}"
        )
    return output


def playbook(
    verb: str,
    inventory: str,
    *extra: str,
    environment: Mapping[str, str] | None = None,
    log: str | None = None,
    warn: Callable[[str], object] | None = None,
) -> int:
    """Run ``playbooks/<verb>.yml`` and return how many tasks changed something, over all hosts.

    Its output and the seconds of its tasks are kept under the name ``log``, which is the verb's unless given.
    ``warn`` gets each warning of validation and preflight, a line: a log of success is not read.
    """
    name = log or verb
    timings = {"LAKEHOUSE_TIMINGS": str(BUILD / "bench" / f"{name}.json"), "ANSIBLE_FORCE_COLOR": "0"}
    (BUILD / "bench").mkdir(parents=True, exist_ok=True)
    argv = [program("ansible-playbook"), "-i", inventory, f"playbooks/{verb}.yml", *extra]
    output = logged(argv, LOGS / f"{name}.log", {**timings, **(environment or {})})
    if warn:
        for line in WARNING.findall(output):
            warn(line)
    return sum(map(int, CHANGED.findall(output)))


def shown(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a program from the repository's root on this terminal and return its exit code."""
    began = time.monotonic()
    code = subprocess.run(argv, cwd=ROOT, env={**os.environ, **(environment or {})}, check=False).returncode
    _ended(argv, code, began)
    return code


def _ended(argv: Sequence[str], code: int, began: float) -> None:
    _LOG.info("%s: exit code %s after %.1f s", " ".join(argv[:4]), code, time.monotonic() - began)
