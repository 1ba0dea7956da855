"""The verb ``step``: what must happen once before a daemon starts or after it answers."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from ansible.module_utils.lakehouse.probes import ask
from ansible.module_utils.lakehouse.refused import RefusedError

from service import spec
from service.steps import hdfs, metastore, namenode, postgresql

POLL_SECONDS = 0.25
WAIT_SECONDS = 90
LOGS = "docker compose logs"

STEPS: dict[str, Callable[[dict[str, Any]], str]] = {
    "postgresql": postgresql.apply,
    "namenode": namenode.apply,
    "metastore": metastore.apply,
    "layout": hdfs.layout,
    "upload": hdfs.upload,
}


def main(name: str) -> str:
    """Do a step as often as one likes; return what was done, nothing if nothing was."""
    if name not in STEPS:
        raise RefusedError("there is no such step", f"name one of these: {', '.join(STEPS)}")
    # Who is told to stop takes with him what he started: a server, a lock.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))
    parameters = spec.entry("steps", name)
    if "wait" in parameters:
        wait(parameters["wait"], parameters.get("wait_seconds", WAIT_SECONDS))
    return STEPS[name](parameters)


def wait(probe: dict[str, Any], seconds: float) -> None:
    """Ask until the answer is right; raise RefusedError with the last wrong one."""
    deadline = time.monotonic() + seconds
    while (answer := ask(probe)) is not None:
        if time.monotonic() > deadline:
            raise RefusedError(f"not ready after {seconds} s: {answer}", LOGS)
        time.sleep(POLL_SECONDS)
