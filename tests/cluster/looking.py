"""The verbs that look at the cluster, as a person starts them, and a host that hangs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lakehouse.model import specs
from lakehouse.model.inventory import Host, Inventory
from lakehouse.outcome import SCHEMA
from lakehouse.run import ROOT
from lakehouse.validation import secrets as validation
from lakehouse.validation import variables
from tests.cluster.machines import container_of

# Of every verb, and of each alone.
KEYS = {"schema", "verb", "target", "outcome", "exit", "hosts", "findings", "next", "seconds"}
OWN_KEYS = {"status": {"cluster"}, "doctor": {"inventory", "checks"}}

# What the verb promises.
DOCTOR_SECONDS = 20


@dataclass(frozen=True)
class Said:
    """What a verb printed, and its exit code."""

    verb: str
    code: int
    out: str
    err: str

    @property
    def document(self) -> Mapping[str, Any]:
        """What it printed for programs."""
        found: Mapping[str, Any] = json.loads(self.out)
        assert found.keys() == KEYS | OWN_KEYS[self.verb]
        assert (found["schema"], found["verb"], found["exit"]) == (SCHEMA, self.verb, self.code)
        return found


def look(verb: str, path: str, *options: str, seconds: float, given: str | None = None) -> Said:
    """Run a verb, which has to end within these seconds whatever the cluster does; it reads what is given."""
    argv = [sys.executable, "-m", "lakehouse.cli", verb, "--inventory", path, *options]
    done = subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds, input=given
    )
    assert "Traceback" not in done.stderr
    return Said(verb, done.returncode, done.stdout, done.stderr)


def doctor(path: str, *options: str) -> Said:
    """Run the doctor, within what it promises."""
    return look("doctor", path, *options, seconds=DOCTOR_SECONDS)


@contextmanager
def paused(host: Host) -> Iterator[None]:
    """As a machine that hangs: connections to it are made, and nothing answers."""
    with container_of(host) as container:
        container.pause()
        try:
            yield
        finally:
            container.unpause()


def secrets(cluster: Inventory) -> list[str]:
    """Every secret of a cluster that is long enough to be looked for, generated ones included."""
    known = variables.options(specs.every())
    found = set[str]().union(*(validation.values(host, known) for host in cluster.hosts))
    return sorted(secret for secret in found if len(secret) >= validation.SHORTEST)
