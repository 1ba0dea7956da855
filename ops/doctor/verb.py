"""The verb: ask everything once, and say what is wrong."""

from __future__ import annotations

import argparse
import time
from contextlib import closing

from ops.probing import Prober

# From the first line of the verb to its last.
LIMIT_SECONDS = 15.0


def main(arguments: argparse.Namespace) -> int:
    """Print a line per finding; return 0, 1 for warnings, or 2 for errors and for what is not known."""
    began = time.monotonic()
    with closing(Prober()) as prober:
        # Ansible takes a second to load, in which the child loads pyinfra.
        from ops.doctor import look  # noqa: PLC0415

        seen = look.look(prober, arguments.inventory, began + LIMIT_SECONDS)
    return look.show(seen, began, as_json=arguments.json)
