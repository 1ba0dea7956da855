"""The verb: ask once, or again and again, and say how it is."""

from __future__ import annotations

import argparse
import time
from contextlib import closing

from ops.probing import Prober

# From the first line of the verb to its last.
LIMIT_SECONDS = 5.0


def main(arguments: argparse.Namespace) -> int:
    """Show the cluster, every `watch` seconds if that is asked for; return the last exit code."""
    while True:
        began = time.monotonic()
        code = _once(arguments, began)
        if not arguments.watch:
            return code
        time.sleep(max(0.0, began + arguments.watch - time.monotonic()))


def _once(arguments: argparse.Namespace, began: float) -> int:
    with closing(Prober()) as prober:
        # Ansible takes a second to load, in which the child loads pyinfra.
        from ops.status import look  # noqa: PLC0415

        status = look.look(prober, arguments.inventory, began + LIMIT_SECONDS)
    return look.show(status, began, as_json=arguments.json, clear=bool(arguments.watch))
