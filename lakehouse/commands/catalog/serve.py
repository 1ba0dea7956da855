import json
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from ipaddress import ip_address

import click

from lakehouse import commands, shared_options
from lakehouse.bind_address import LOOPBACK
from lakehouse.catalog.served.handler import Handler
from lakehouse.catalog.served.hdfs_root import HdfsRoot
from lakehouse.catalog.served.locations import LiveLocations, Locations, SnapshotLocations
from lakehouse.catalog.served.metadata_copies import MetadataCopies
from lakehouse.catalog.served.request import Request
from lakehouse.catalog.served.server import COMMAND, Server
from lakehouse.catalog.served.unsupported_fields import UnsupportedFields
from lakehouse.catalog.snapshot_reader import SnapshotReader
from lakehouse.catalog.store import Entry
from lakehouse.cluster_catalog import targets
from lakehouse.cluster_catalog.repository import opened
from lakehouse.errors import LakehouseError
from lakehouse.interruption import raised, terminated
from lakehouse.remote import output
from lakehouse.shared_options import CatalogOptions
from lakehouse.terminal import printable
from lakehouse.validation.finding import Finding, Level


@commands.command(failure=commands.NOT_KNOWN)
@click.argument("commit", default="HEAD")
@click.option("--address", "--host", "address", default=LOOPBACK, help="address to listen on")
@click.option("--port", type=shared_options.port_type, default=9084, help="port to listen on; 0 for any")
@shared_options.catalog
def command(commit: str, address: str, port: int, options: CatalogOptions) -> int:
    """Serve a commit as a read-only metastore, until Ctrl-C.

    COMMIT is an id, tag, branch or HEAD~2.
    """
    with raised(terminated, [signal.SIGTERM]), opened(options) as (store, target), ExitStack() as stack:
        entry = store.resolve(commit)
        reader = SnapshotReader(store, entry.tree)
        locations = stack.enter_context(_locations(options, entry))
        request = Request(reader, entry, UnsupportedFields(output.progress), int(time.time()), locations)
        handler = Handler(request, output.progress)
        with Server(address, port, lambda: handler, report=output.progress) as server:
            _say(options, server, entry, target)
            server.serve_forever()
    return 0


@contextmanager
def _locations(options: CatalogOptions, entry: Entry) -> Iterator[Locations]:
    """Give where the files of a commit are: in HDFS and its snapshots, if this is the commit's cluster."""
    try:
        target = targets.choose(options)
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


def _say(options: CatalogOptions, server: Server, entry: Entry, target: str) -> None:
    """Print where it is, for people or for programs, and a warning where others reach it too."""
    host, port = server.server_address[:2]
    if not ip_address(str(host)).is_loopback:
        finding = Finding(
            "catalog.address",
            str(host),
            f"a client that reaches port {port} reads the catalog as it was, without a password",
            f"{COMMAND} --address {LOOPBACK}, and ssh -L {port}:{LOOPBACK}:{port} from elsewhere",
            str(LOOPBACK),
            Level.WARNING,
        )
        output.progress(str(finding))
    line = (
        json.dumps({"verb": "catalog serve", "target": target, "commit": entry.id, "uri": server.place})
        if options.as_json
        else f"catalog serve {target}: commit {entry.short} ({entry.subject}) at {server.place}, read-only;"
        " Ctrl-C ends it"
    )
    sys.stdout.write(f"{printable(line)}\n")
    sys.stdout.flush()
