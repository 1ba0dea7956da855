"""The verb: ask once, or again and again, and say how it is."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing

from lakehouse.run import BUILD
from ops.asking import Asker
from ops.outcome import Result
from ops.status import screen
from ops.status.model import Status

REPORT = BUILD / "report"
# From the first line of the verb to its last.
LIMIT_SECONDS = 5.0
_CLEAR = "\x1b[H\x1b[2J"


def main(arguments: argparse.Namespace) -> int:
    """Show the cluster, every `watch` seconds if that is asked for; return the last exit code."""
    while True:
        began = time.monotonic()
        status = _look(arguments.inventory, began + LIMIT_SECONDS)
        ending = screen.result(status, time.monotonic() - began)
        _show(status, ending, as_json=arguments.json, clear=bool(arguments.watch) and sys.stdout.isatty())
        if not arguments.watch:
            return int(ending.outcome)
        time.sleep(max(0.0, began + arguments.watch - time.monotonic()))


def _look(path: str, until: float) -> Status:
    with closing(Asker()) as asker:
        # Ansible takes a second to load, in which the child loads pyinfra.
        from ops.status import look  # noqa: PLC0415

        return look.look(asker, path, until, REPORT)


def _show(status: Status, ending: Result, *, as_json: bool, clear: bool) -> None:
    shown = json.dumps(ending.json()) if as_json else screen.screen(status, ending)
    sys.stdout.write(f"{_CLEAR if clear and not as_json else ''}{shown}\n")
    sys.stdout.flush()
