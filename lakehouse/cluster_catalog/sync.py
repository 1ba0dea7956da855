"""Synchronize the copy of this checkout with the cluster's own history, to which its timer commits."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import IO, Any

from lakehouse.catalog import checksums, exchange
from lakehouse.catalog.references import is_name
from lakehouse.catalog.store import Store
from lakehouse.errors import LakehouseError
from lakehouse.model.placement import Cluster
from lakehouse.next_command import PROGRAM as KIT
from lakehouse.remote import hosted
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError, Optional

PROGRAM = "/usr/local/sbin/lakehouse-catalog"
_SECONDS = 900.0
# The timeout of a copy of tables.
_COPY_SECONDS = 24 * 3600.0
# Retries after a concurrent update of the same references.
_TRIES = 5


def _name(value: Any, where: str) -> str:
    """Check the name of a branch or a tag, since a copy never drops a name that it was sent."""
    name = checked_document.line(value, where)
    if not (name.startswith(("heads/", "tags/")) and is_name(name)):
        raise DocumentError(f"{where}: {checked_document.shown(name)} is no name of a branch or a tag")
    return name


_ID = re.compile(r"[0-9a-f]{40}")
# The responses of the programs, which are checked: they come from a service account on another machine.
_COMMITTED = {
    "commit": _ID,
    "new": checked_document.flag,
    "written": checked_document.count,
    "identity": _ID,
    "event": Optional(checked_document.count),
    "counts": checked_document.mapping(checked_document.text, checked_document.count),
    "strangers": [[checked_document.text]],
    "unversioned": [checked_document.text],
    "snapshot": Optional(checked_document.line),
}
_LACK = {
    "files": checked_document.count,
    "bytes": checked_document.count,
    "stranger": checked_document.text,
}
_ANSWERS: Mapping[str, checked_document.Kind] = {
    "give": {
        "id": re.compile(r"[0-9a-f]{32}"),
        "names": checked_document.mapping(_name, _ID),
        "ends": [_ID],
        "marks": Optional(checked_document.unchecked),
    },
    "take": {"refused": [checked_document.text]},
    "commit": _COMMITTED,
    "clock": _COMMITTED,
    "lack": {"room": checked_document.count, "lacks": [_LACK]},
    "bring": {"files": checked_document.count},
}
# Runs a program of the cluster's history with a request; gives its line of JSON, and the stream behind it.
Node = Callable[[str, Mapping[str, Any]], AbstractContextManager[tuple[bytes, IO[bytes]]]]


def node(cluster: Cluster) -> Node | None:
    """Return a function that runs programs of the cluster's history as its owner; None without a history."""
    if not cluster.variable("lakehouse_catalog_enabled"):
        return None
    host = cluster.active("postgresql")

    def run(program: str, request: Mapping[str, Any]) -> AbstractContextManager[tuple[bytes, IO[bytes]]]:
        seconds = _COPY_SECONDS if program == "bring" else _SECONDS
        return hosted.run(cluster, host, [PROGRAM, program], request, seconds)

    return run


def call(node: Node, program: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response of a program; LakehouseError with its error."""
    with node(program, request) as (line, _):
        return _document(program, line)


def synchronize(store: Store, node: Node, say: Callable[[str], object]) -> None:
    """Synchronize a copy and the cluster's history in both directions.

    The next run completes an interrupted one. Raises LakehouseError if the host does not answer.
    """
    with store.locked():
        for _ in range(_TRIES):
            theirs = _fetch(store, node)
            before = exchange.last_names(store, theirs["id"])
            moves = _reconcile(store, theirs["names"], before)
            for name, new_name in moves.renamed.items():
                say(f"{name} has diverged from the cluster's history; the local commit is now {new_name}")
            while moves.local:
                for name, (old, new) in moves.local.items():
                    store.references.put(name, old, new)
                moves = _reconcile(store, theirs["names"], before)
            if not moves.remote or not _send(store, node, theirs["names"], moves.remote):
                exchange.remember_names(store, theirs["id"])
                return
    raise LakehouseError(f"{store.path}: the history is being updated concurrently", "the same command")


def _reconcile(store: Store, theirs: Mapping[str, str], before: Mapping[str, str]) -> exchange.Moves:
    def descends(commit: str, ancestor: str) -> bool:
        return store.descends(store.commit(commit), store.commit(ancestor))

    return exchange.reconcile(exchange.names(store), theirs, before, descends)


def _fetch(store: Store, node: Node) -> dict[str, Any]:
    """Fetch the objects that this copy lacks; return the response, with the references of the cluster."""
    with node("give", exchange.question(store)) as (line, stream):
        response = _document("give", line)
        store.objects.read_pack(stream)
    # A truncated response may lack its pack.
    references = response["names"].items()
    if missing := next((name for name, number in references if number not in store.objects), None):
        raise LakehouseError(
            f"{store.path}: {missing} of the cluster's history was not sent", "the same command"
        )
    store.end_where_needed(response["ends"])
    if response["marks"] is not None:
        checksums.write(store, response["marks"])
    return response


def _send(
    store: Store, node: Node, theirs: Mapping[str, str], moves: Mapping[str, exchange.Move]
) -> list[str]:
    """Send commits and references to the cluster's history; return the names that have moved meanwhile."""
    pack = io.BytesIO()
    store.objects.write_pack(theirs.values(), [new for _, new in moves.values() if new], pack)
    text = base64.b64encode(pack.getvalue()).decode()
    request = {"moves": dict(moves), "ends": sorted(store.ends()), "pack": text}
    return list(call(node, "take", request)["refused"])


def _document(program: str, line: bytes) -> dict[str, Any]:
    return hosted.document(line, _ANSWERS[program], "the cluster's history", f"{KIT} doctor")
