"""The cluster's own history, which its timer writes, and the copy of it that this checkout has."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any

from lakehouse.catalog import checksums, exchange
from lakehouse.catalog.references import is_name
from lakehouse.catalog.store import Store
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import PROGRAM as KIT
from lakehouse.next_command import command
from ops import remote
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError, Optional

PROGRAM = "/usr/local/sbin/lakehouse-catalog"
_SECONDS = 900.0
# Of what copies the rows of a table.
_COPY_SECONDS = 24 * 3600.0
# Another command may move the same names meanwhile, but hardly so often.
_TRIES = 5
_NOT_FOUND = 127
# Of a line of JSON: the marks of a million tables are shorter.
_LINE_BYTES = 256 << 20


def _name(value: Any, where: str) -> str:
    """Return the name of a branch or of a tag: another one would be given to this copy for ever."""
    name = checked_document.line(value, where)
    if not (name.startswith(("heads/", "tags/")) and is_name(name)):
        raise DocumentError(f"{where}: {checked_document.shown(name)} is no name of a branch or a tag")
    return name


_ID = re.compile(r"[0-9a-f]{40}")
# What each program answers: a service's account on another machine has the history, and writes this.
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
_REFUSAL = {
    "why": checked_document.text,
    "next": Optional(checked_document.text),
    "usage": checked_document.flag,
}

# Runs a program of the cluster's history with what it is asked; gives its line of JSON, and what follows.
Node = Callable[[str, Mapping[str, Any]], AbstractContextManager[tuple[bytes, IO[bytes]]]]


def node(cluster: Cluster) -> Node | None:
    """Return what runs the programs of a cluster's history, as its owner; None where there is none."""
    if not cluster.variable("lakehouse_catalog_enabled"):
        return None
    host = cluster.active("postgresql")
    person = str(cluster.variable("lakehouse_users")["hive"])

    @contextmanager
    def run(program: str, asked: Mapping[str, Any]) -> Iterator[tuple[bytes, IO[bytes]]]:
        script = f"cd / && exec {shlex.join(['runuser', '-u', person, '--', PROGRAM, program])}"
        seconds = _COPY_SECONDS if program == "bring" else _SECONDS
        with remote.output(host, script, seconds, f"{json.dumps(asked)}\n") as (stdout, ended):
            head = stdout.readline(_LINE_BYTES)
            if not head:
                answer = ended()
                install = f"make lakehouse INVENTORY={cluster.inventory.path}"
                if answer.value == _NOT_FOUND:
                    raise LakehouseError(f"{host.name} keeps no history yet", install)
                if answer.value is not None:
                    why = f"{PROGRAM} ended with {answer.value}: it may be of another version of the kit"
                    raise LakehouseError(f"{host.name}: {why}", install)
                raise LakehouseError(f"{host.name}: {answer.why}", command("doctor", cluster.inventory.path))
            yield head, stdout

    return run


def told(node: Node, program: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a program answers; LakehouseError with what it refuses."""
    with node(program, asked) as (line, _):
        return _document(program, line)


def synchronize(store: Store, node: Node, say: Callable[[str], object]) -> None:
    """Have the copy and the cluster's history hold the same; what was not yet there is brought there.

    A kill leaves what the next one completes. Raises LakehouseError where the host is silent.
    """
    with store.locked():
        for _ in range(_TRIES):
            theirs = _fetched(store, node)
            before = exchange.met(store, theirs["id"])
            moves = _reconciled(store, theirs["names"], before)
            for name, other in moves.renamed.items():
                say(f"{name} is otherwise in the cluster's history; what was here is {other}")
            while moves.here:
                for name, (old, new) in moves.here.items():
                    store.references.put(name, old, new)
                moves = _reconciled(store, theirs["names"], before)
            if not moves.there or not _sent(store, node, theirs["names"], moves.there):
                exchange.meet(store, theirs["id"])
                return
    raise LakehouseError(f"{store.path}: others change the history all the time", "the same again")


def _reconciled(store: Store, theirs: Mapping[str, str], before: Mapping[str, str]) -> exchange.Moves:
    def descends(one: str, other: str) -> bool:
        return store.descends(store.commit(one), store.commit(other))

    return exchange.reconcile(exchange.names(store), theirs, before, descends)


def _fetched(store: Store, node: Node) -> dict[str, Any]:
    """Keep what the cluster's history has and this copy has not; return what it says of itself."""
    with node("give", exchange.question(store)) as (line, stream):
        said = _document("give", line)
        store.objects.read_pack(stream)
    # An answer that ended behind its line has no pack.
    if lacking := next((name for name, number in said["names"].items() if number not in store.objects), None):
        raise LakehouseError(
            f"{store.path}: {lacking} of the cluster's history did not come", "the same again"
        )
    store.end_where_needed(said["ends"])
    if said["marks"] is not None:
        checksums.write(store, said["marks"])
    return said


def _sent(
    store: Store, node: Node, theirs: Mapping[str, str], moves: Mapping[str, exchange.Move]
) -> list[str]:
    """Bring commits and their names to the cluster's history; return the names that others have moved."""
    pack = io.BytesIO()
    store.objects.write_pack(theirs.values(), [new for _, new in moves.values() if new], pack)
    text = base64.b64encode(pack.getvalue()).decode()
    asked = {"moves": dict(moves), "ends": sorted(store.ends()), "pack": text}
    return list(told(node, "take", asked)["refused"])


def _document(program: str, line: bytes) -> dict[str, Any]:
    try:
        said = checked_document.checked(checked_document.parse(line, program), {}, program)
        said = checked_document.checked(said, _REFUSAL if "why" in said else _ANSWERS[program], program)
    except DocumentError as error:
        raise LakehouseError(f"the cluster's history gives no answer: {error}", f"{KIT} doctor") from None
    if "why" in said:
        raise (UsageError if said["usage"] else LakehouseError)(said["why"], said.get("next"))
    return dict(said)
