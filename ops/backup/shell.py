"""Runs scripts on hosts as root, and says how each ended."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.next_command import command
from ops import hosts
from ops.probing import Prober, Shell
from ops.status import questions
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError

T = TypeVar("T")

PROGRAM = "/usr/local/sbin/lakehouse-backup"
KEEPER = questions.KEEPER
_FOLDER = "/run/lakehouse"
_WAIT_SECONDS = 600
# Of what a host says in the place of an answer.
_SAID = 300
_END = re.compile(r"\n?@@ended (\d+)\s*$")


@dataclass(frozen=True)
class Done:
    """How a script ended: its exit code, None where the host said nothing, and what it printed."""

    code: int | None
    text: str


def act(cluster: Cluster, scripts: Mapping[str, str], seconds: float) -> dict[str, Done]:
    """Run a script on each host at once, each of them for so many seconds at the most."""
    asked = [Shell(host, host, _marked(script)) for host, script in scripts.items()]
    data = {host.name: hosts.connection(host) for host in cluster.hosts if host.name in scripts}
    with closing(Prober()) as prober:
        answers = prober.ask(data, asked, time.monotonic() + seconds)
    done = {}
    for host, answer in answers.items():
        text = answer.value.text if answer.value else answer.why
        found = _END.search(text)
        done[host] = Done(int(found[1]) if found else None, _END.sub("", text).strip())
    return done


def must(cluster: Cluster, scripts: Mapping[str, str], seconds: float) -> dict[str, str]:
    """Run a script on each host; LakehouseError with the end of what the first of them said that failed."""
    done = act(cluster, scripts, seconds)
    for host, one in done.items():
        if one.code != 0:
            lines = [line for line in one.text.splitlines() if line.strip()]
            said = " ".join((lines[-1] if lines else f"exit {one.code}").split())
            raise LakehouseError(f"{host}: {said}", command("doctor", cluster.inventory.path))
    return {host: one.text for host, one in done.items()}


def alone(script: str) -> str:
    """Return a script that waits on its host for one that an interrupted run has left at work there."""
    return f"""mkdir -p {_FOLDER}
exec 9>{_FOLDER}/restore.work
flock -w {_WAIT_SECONDS} 9 || {{ echo 'another restore is at work here'; exit 1; }}
{script}"""


def keeper(cluster: Cluster) -> str:
    """Return the host that keeps backups; LakehouseError where the inventory wants none."""
    if not cluster.variable("lakehouse_backup_enabled"):
        raise LakehouseError(
            f"{cluster.inventory.path} has lakehouse_backup_enabled: false",
            "set it to true, then make lakehouse",
        )
    name = str(cluster.variable("lakehouse_backup_host"))
    if name not in {host.name for host in cluster.hosts}:
        raise LakehouseError(
            f"lakehouse_backup_host is {name}, which is no host of {cluster.inventory.path}",
            f"ansible-inventory -i {cluster.inventory.path} --graph",
        )
    return name


def last(cluster: Cluster) -> str:
    """Return the script that prints what came of the last backup, good or not."""
    return questions.last_backup(cluster.variable("lakehouse_backup_dir"))


def program(cluster: Cluster, *words: str, seconds: float, read: Callable[[Any], T]) -> T:
    """Run one of the repository's programs; return what `read` makes of its value.

    LakehouseError with the reason where there is none, or where it is not what such a program answers;
    UsageError where it is that the backup, table or database is not there.
    """
    host = keeper(cluster)
    script = f"cd / && runuser -u {KEEPER} -- {PROGRAM} {shlex.join(words)}"
    said = act(cluster, {host: script}, seconds)[host]
    path = cluster.inventory.path
    try:
        answer = dict(checked_document.parse(said.text.splitlines()[-1], "the answer"))
    except (ValueError, TypeError, IndexError):
        words_of_host = checked_document.printable(" ".join(said.text.split())[-_SAID:])
        raise LakehouseError(f"{host}: {words_of_host or 'no answer'}", command("status", path)) from None
    if "value" not in answer:
        # A new backup could be the one for which the retention removes what is looked for.
        why = checked_document.printable(str(answer.get("why"))[:_SAID])
        kind = UsageError if answer.get("usage") is True else LakehouseError
        raise kind(f"{host}: {why}", command("backup list", path))
    try:
        return read(answer["value"])
    except DocumentError as error:
        raise LakehouseError(
            f"{host}: {words[0]}: {error}; nothing was done with it",
            command("backup list", path),
        ) from error


def _marked(script: str) -> str:
    return f'({hosts.as_root(f"exec 2>&1 </dev/null; {script}")}); echo "@@ended $?"'
