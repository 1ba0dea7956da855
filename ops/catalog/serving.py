"""The verb that makes a commit a metastore, until somebody ends it."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from ipaddress import ip_address

from lakehouse.catalog.past import Past
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import COMMAND, Server
from lakehouse.catalog.served.told import Told
from lakehouse.catalog.store import Entry
from lakehouse.interruption import raised, terminated
from lakehouse.listening import LOOPBACK
from lakehouse.terminal import printable
from lakehouse.validation.finding import Finding, Level
from ops import tell
from ops.catalog.opened import opened


def main(arguments: argparse.Namespace) -> int:
    """Serve a commit until Ctrl-C.

    Raises LakehouseError where the commit or the address is wrong, before anything is served.
    """
    with raised(terminated, [signal.SIGTERM]), opened(arguments) as (store, target):
        entry = store.resolve(arguments.commit)
        past = Past(store, entry.tree)
        handler = Handler(Request(past, entry, Told(tell.progress), int(time.time())), tell.progress)
        with Server(arguments.address, arguments.port, lambda: handler, report=tell.progress) as server:
            _say(arguments, server, entry, target)
            server.serve_forever()
    return 0


def _say(arguments: argparse.Namespace, server: Server, entry: Entry, target: str) -> None:
    """Print where it is, for people or for programs, and a warning where others reach it too."""
    host, port = server.server_address[:2]
    if not ip_address(str(host)).is_loopback:
        found = Finding(
            "catalog.address",
            str(host),
            f"whoever reaches port {port} reads the catalog as it was, without a password",
            f"{COMMAND} --address {LOOPBACK}, and ssh -L {port}:{LOOPBACK}:{port} from elsewhere",
            str(LOOPBACK),
            Level.WARNING,
        )
        tell.progress(str(found))
    said = (
        json.dumps({"verb": "catalog serve", "target": target, "commit": entry.id, "uri": server.place})
        if arguments.json
        else f"catalog serve {target}: commit {entry.short} ({entry.subject}) at {server.place}, read-only;"
        " Ctrl-C ends it"
    )
    sys.stdout.write(f"{printable(said)}\n")
    sys.stdout.flush()
