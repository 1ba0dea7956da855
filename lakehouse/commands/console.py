import signal
import sys
from threading import Thread

import click

from lakehouse import commands, shared_options
from lakehouse.bind_address import LOOPBACK
from lakehouse.console.server import Server
from lakehouse.interruption import raised, terminated
from lakehouse.validation.finding import Finding, Level

# After fsck, which walks through all files, the NameNode rests nine times as long.
_REST = 9.0
# In seconds, between two looks at a cluster.
_LEAST_PAUSE, _MOST_PAUSE = 1, 3600


def _pause(_: click.Context, __: click.Parameter, seconds: float) -> float:
    if not _LEAST_PAUSE <= seconds <= _MOST_PAUSE:
        raise click.BadParameter(f"{seconds:g} is no number of seconds from {_LEAST_PAUSE} to {_MOST_PAUSE}")
    return seconds


@commands.command(failure=commands.NOT_KNOWN)
@click.option("--address", default=LOOPBACK, help="address to listen on")
@click.option("--port", type=shared_options.port_type, default=8765, help="port to listen on; 0 for any")
@click.option(
    "--every", type=float, default=10.0, metavar="SECONDS", callback=_pause, help="time between two looks"
)
@shared_options.inventory
def command(address: str, port: int, every: float, inventory: str) -> None:
    """Serve a live page about the cluster, until Ctrl-C."""
    with raised(terminated, [signal.SIGTERM]), Server(address, port) as server:
        from lakehouse.console import look  # noqa: PLC0415 -- Ansible takes a second to load
        from lakehouse.console.pages import Pages  # noqa: PLC0415
        from lakehouse.console.watch import Watch  # noqa: PLC0415

        views = Watch(
            lambda: look.look(inventory), look.look(inventory), every=every, limit=look.LIMIT_SECONDS
        )
        counts = Watch(
            lambda: look.count(views.snapshot.value),
            look.uncounted(),
            every=every,
            limit=look.FSCK_SECONDS,
            rest=_REST,
        )
        plots = Watch(
            lambda: look.plots(inventory), look.unread_plots(), every=every, limit=look.LIMIT_SECONDS
        )
        server.pages = Pages(views, counts, plots)
        # It is slow, so it starts before a user opens the page.
        counts.show()
        for background in (counts.run, plots.run, server.serve_forever):
            Thread(target=background, daemon=True).start()
        try:
            say(server, views.snapshot.value.status.cluster, every)
            # Here, so that an interrupt ends the request and its worker.
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
