"""Programs that a role has installed on a host: a line of JSON is the request, and one is the reply."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from lakehouse.remote import openssh
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError, Kind, Optional

# The limit of a line of JSON: the checksums of a million tables are shorter.
_LINE_BYTES = 256 << 20
_NOT_FOUND = 127
_REFUSAL = {
    "why": checked_document.text,
    "next": Optional(checked_document.text),
    "usage": checked_document.flag,
}


@contextmanager
def run(
    cluster: Cluster, host: Host, argv: list[str], request: Mapping[str, Any], seconds: float
) -> Iterator[tuple[bytes, IO[bytes]]]:
    """Run a program as the metastore's account; give its line of JSON, and the stream behind it.

    LakehouseError where the host or the program does not answer.
    """
    user = str(cluster.variable("lakehouse_users")["hive"])
    script = f"cd / && exec {shlex.join(['runuser', '-u', user, '--', *argv])}"
    with openssh.output(host, script, seconds, f"{json.dumps(request)}\n") as (stdout, ended):
        head = stdout.readline(_LINE_BYTES)
        if not head:
            answer = ended()
            install = f"make lakehouse INVENTORY={cluster.inventory.path}"
            if answer.value == _NOT_FOUND:
                raise LakehouseError(f"{host.name} has no {argv[0]} yet", install)
            if answer.value is not None:
                why = f"{argv[0]} ended with {answer.value}: it may be of another version of the kit"
                raise LakehouseError(f"{host.name}: {why}", install)
            raise LakehouseError(f"{host.name}: {answer.why}", command("doctor", cluster.inventory.path))
        yield head, stdout


def document(line: bytes, kind: Kind, subject: str, following: str) -> dict[str, Any]:
    """Return the reply of a program; its own refusal, or a reply of another kind, is a LakehouseError."""
    try:
        reply = checked_document.checked(checked_document.parse(line, subject), {}, subject)
        reply = checked_document.checked(reply, _REFUSAL if "why" in reply else kind, subject)
    except DocumentError as error:
        raise LakehouseError(f"{subject} gives no answer: {error}", following) from None
    if "why" in reply:
        raise (UsageError if reply["usage"] else LakehouseError)(reply["why"], reply.get("next"))
    return dict(reply)
