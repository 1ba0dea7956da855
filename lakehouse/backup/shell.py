"""Run scripts on hosts as root, and return exit code and output of each."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from lakehouse.remote import hosts
from lakehouse.remote.probing import Prober, Shell
from lakehouse.status import questions
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError

T = TypeVar("T")

PROGRAM = "/usr/local/sbin/lakehouse-backup"
KEEPER = questions.KEEPER
_FOLDER = "/run/lakehouse"
_WAIT_SECONDS = 600
# Characters of unexpected output in a message.
_MOST = 300
_END = re.compile(r"\n?@@ended (\d+)\s*$")


@dataclass(frozen=True)
class ScriptResult:
    """Exit code and output of a script; the code is None where the host did not answer."""

    code: int | None
    text: str


def act(cluster: Cluster, scripts: Mapping[str, str], seconds: float) -> dict[str, ScriptResult]:
    """Run a script on each host in parallel, each with a timeout."""
    shells = [Shell(host, host, _marked(script)) for host, script in scripts.items()]
    data = {host.name: hosts.connection(host) for host in cluster.hosts if host.name in scripts}
    with closing(Prober()) as prober:
        answers = prober.ask(data, shells, time.monotonic() + seconds)
    results = {}
    for host, answer in answers.items():
        text = answer.value.text if answer.value else answer.why
        match = _END.search(text)
        results[host] = ScriptResult(int(match[1]) if match else None, _END.sub("", text).strip())
    return results


def must(cluster: Cluster, scripts: Mapping[str, str], seconds: float) -> dict[str, str]:
    """Run a script on each host, and return its output; LakehouseError with the last line of a failed one."""
    results = act(cluster, scripts, seconds)
    for host, result in results.items():
        if result.code != 0:
            lines = [line for line in result.text.splitlines() if line.strip()]
            reason = " ".join((lines[-1] if lines else f"exit {result.code}").split())
            raise LakehouseError(f"{host}: {reason}", command("doctor", cluster.inventory.path))
    return {host: result.text for host, result in results.items()}


def exclusive(script: str) -> str:
    """Return a script that first waits for the host's lock, which one of an interrupted run may hold."""
    return f"""mkdir -p {_FOLDER}
exec 9>{_FOLDER}/restore.work
flock -w {_WAIT_SECONDS} 9 || {{ echo 'another restore is at work here'; exit 1; }}
{script}"""


def keeper(cluster: Cluster) -> str:
    """Return the host that stores backups; LakehouseError where backups are disabled."""
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
    """Return the script that prints the result of the last backup."""
    return questions.last_backup(cluster.variable("lakehouse_backup_dir"))


def program(cluster: Cluster, *words: str, seconds: float, read: Callable[[Any], T]) -> T:
    """Run a program of the repository's host, and return its value as parsed by `read`.

    Raises LakehouseError where it fails or prints an invalid value, UsageError where the backup, table or
    database does not exist.
    """
    host = keeper(cluster)
    script = f"cd / && runuser -u {KEEPER} -- {PROGRAM} {shlex.join(words)}"
    result = act(cluster, {host: script}, seconds)[host]
    path = cluster.inventory.path
    try:
        answer = dict(checked_document.parse(result.text.splitlines()[-1], "the answer"))
    except (ValueError, TypeError, IndexError):
        words_of_host = checked_document.printable(" ".join(result.text.split())[-_MOST:])
        raise LakehouseError(f"{host}: {words_of_host or 'no answer'}", command("status", path)) from None
    if "value" not in answer:
        # A new backup is not suggested: retention could remove the backup that was requested for it.
        why = checked_document.printable(str(answer.get("why"))[:_MOST])
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
