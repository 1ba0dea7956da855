"""The verb that makes a commit a metastore, until it is ended."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from ipaddress import ip_address

from lakehouse.bind_address import LOOPBACK
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.hdfs_root import HdfsRoot
from lakehouse.catalog.served.locations import LiveLocations, Locations, SnapshotLocations
from lakehouse.catalog.served.metadata_copies import MetadataCopies
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import COMMAND, Server
from lakehouse.catalog.served.unsupported_fields import Told
from lakehouse.catalog.snapshot_reader import Past
from lakehouse.catalog.store import Entry
from lakehouse.errors import LakehouseError
from lakehouse.interruption import raised, terminated
from lakehouse.terminal import printable
from lakehouse.validation.finding import Finding, Level
from ops import output
from ops.catalog import targets
from ops.catalog.repository import opened


def main(arguments: argparse.Namespace) -> int:
    """Serve a commit until Ctrl-C.

    Raises LakehouseError where the commit or the address is wrong, before anything is served.
    """
    with (
        raised(terminated, [signal.SIGTERM]),
        opened(arguments) as (store, target),
        ExitStack() as stack,
    ):
        entry = store.resolve(arguments.commit)
        past = Past(store, entry.tree)
        locations = stack.enter_context(_locations(arguments, entry))
        asked = Request(past, entry, Told(output.progress), int(time.time()), locations)
        handler = Handler(asked, output.progress)
        with Server(arguments.address, arguments.port, lambda: handler, report=output.progress) as server:
            _say(arguments, server, entry, target)
            server.serve_forever()
    return 0


@contextmanager
def _locations(arguments: argparse.Namespace, entry: Entry) -> Iterator[Locations]:
    """Give where the files of a commit are: in HDFS and its snapshots, if this is the commit's cluster."""
    try:
        target = targets.choose(arguments)
        # A repository of your own may be of another cluster: it is served without files.
        is_own = entry.facts.get("Cluster") == target.name
        hdfs_root = HdfsRoot(target.files().hdfs, target.root) if is_own else None
    except LakehouseError as error:
        output.progress(f"DEGRADED catalog.files HDFS cannot be read, nor its snapshots: {error}")
        hdfs_root = None
    if hdfs_root is None:
        yield LiveLocations()
        return
    with closing(MetadataCopies(hdfs_root, f"{socket.gethostname()}-{secrets.token_hex(8)}")) as copies:
        copies.clean(output.progress)
        yield SnapshotLocations(hdfs_root, copies, entry, output.progress)


def _say(arguments: argparse.Namespace, server: Server, entry: Entry, target: str) -> None:
    """Print where it is, for people or for programs, and a warning where others reach it too."""
    host, port = server.server_address[:2]
    if not ip_address(str(host)).is_loopback:
        found = Finding(
            "catalog.address",
            str(host),
            f"a client that reaches port {port} reads the catalog as it was, without a password",
            f"{COMMAND} --address {LOOPBACK}, and ssh -L {port}:{LOOPBACK}:{port} from elsewhere",
            str(LOOPBACK),
            Level.WARNING,
        )
        output.progress(str(found))
    said = (
        json.dumps({"verb": "catalog serve", "target": target, "commit": entry.id, "uri": server.place})
        if arguments.json
        else f"catalog serve {target}: commit {entry.short} ({entry.subject}) at {server.place}, read-only;"
        " Ctrl-C ends it"
    )
    sys.stdout.write(f"{printable(said)}\n")
    sys.stdout.flush()
