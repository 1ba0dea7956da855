"""The verb: look at the cluster while a user looks at the page."""

from __future__ import annotations

import argparse
import signal
import sys
from threading import Thread

from lakehouse.bind_address import LOOPBACK
from lakehouse.interruption import raised, terminated
from lakehouse.validation.finding import Finding, Level
from ops.console.server import Server

# After fsck, which walks through all files, the NameNode rests nine times as long.
_REST = 9.0


def main(arguments: argparse.Namespace) -> int:
    """Serve the page until it is ended.

    Raises LakehouseError where the port or the inventory is wrong, before anything is served.
    """
    with (
        raised(terminated, [signal.SIGTERM]),
        Server(arguments.address, arguments.port) as server,
    ):
        from ops.console import look  # noqa: PLC0415 -- Ansible takes a second to load
        from ops.console.pages import Pages  # noqa: PLC0415
        from ops.console.watch import Watch  # noqa: PLC0415

        views = Watch(
            lambda: look.look(arguments.inventory),
            look.look(arguments.inventory),
            every=arguments.every,
            limit=look.LIMIT_SECONDS,
        )
        counts = Watch(
            lambda: look.count(views.seen.value),
            look.uncounted(),
            every=arguments.every,
            limit=look.FSCK_SECONDS,
            rest=_REST,
        )
        server.pages = Pages(views, counts)
        # It takes its time: begun before a user opens the page.
        counts.show()
        for background in (counts.run, server.serve_forever):
            Thread(target=background, daemon=True).start()
        try:
            say(server, views.seen.value.status.cluster, arguments.every)
            # Here, so that an interrupt ends the look and its child.
            views.run()
        finally:
            server.shutdown()


def say(server: Server, cluster: str, every: float) -> None:
    """Print where it is, and a warning where others reach it too."""
    if not server.local:
        sys.stderr.write(f"{_open(server)}\n")
    sys.stdout.write(
        f"console {cluster}: {server.url}; every {every:g} s while a page is open; Ctrl-C ends it\n"
    )
    sys.stdout.flush()


def _open(server: Server) -> Finding:
    """Return the warning that others may look."""
    return Finding(
        "console.address",
        server.host,
        f"a client that reaches port {server.port} sees the cluster, without a password",
        f"leave --address out, and use ssh -L {server.port}:{LOOPBACK}:{server.port} from elsewhere",
        LOOPBACK,
        Level.WARNING,
    )
