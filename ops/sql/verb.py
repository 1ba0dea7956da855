"""The verb `sql`: statements on an engine in a person's name, or a session where there are none."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehouse import inventory
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.inventory import Host
from lakehouse.next_command import command
from ops import hosts, outcome, output
from ops.outcome import Finding, Result
from ops.sql import flink, nodes, rows, spark, statements, trino
from ops.sql.query import Asked, Outcome
from ops.sql.rows import Rows
from ops.status import placement
from plugins.module_utils.lakehouse.counting import counted

VERB = "sql"
# ssh's own code, where it never got there.
_LOST = 255


@dataclass(frozen=True)
class Engine:
    """Where an engine is asked: the first host of a group; as whom unless one is given; and how."""

    group: str
    user: str
    ask: Callable[[Asked], Outcome]
    session: Callable[[Asked], str]
    # As whom the program of a session runs, where that is not the person.
    account: Callable[[Asked], str] = lambda asked: asked.person


ENGINES = {
    "spark": Engine("clients", "spark", spark.CLIENT.ask, spark.session),
    "trino": Engine("trino_coordinator", "trino", trino.ask, trino.session, trino.account),
    "flink": Engine("flink_jobmanager", "flink", flink.CLIENT.ask, flink.session),
}


def main(arguments: argparse.Namespace) -> int:
    """Show rows; return 0, 1 if the engine refused, 2 if it was silent, 124. A session's code is its own."""
    began = time.monotonic()
    texts = _statements(arguments)
    engine = ENGINES[arguments.engine]
    cluster = placement.read(inventory.load(arguments.inventory))
    host = _host(cluster, arguments.engine, engine)
    person = arguments.person or str(cluster.variable("lakehouse_users")[engine.user])
    asked = Asked(cluster, host, person, texts or (), arguments.limit)
    output.progress(f"{arguments.engine} on {host.name} as {person}")
    if texts is None:
        return _session(asked, engine)
    found = engine.ask(asked)
    if not arguments.json:
        shown = _form(as_csv=arguments.csv)(found.results)
        sys.stdout.write(shown if not shown or shown.endswith("\n") else f"{shown}\n")
        sys.stdout.flush()
    return output.end(_result(arguments, asked, found, time.monotonic() - began), as_json=arguments.json)


def _form(*, as_csv: bool) -> Callable[[Sequence[Rows]], str]:
    """Return what makes text of rows; a file or a pipe gets CSV as it is."""
    if not as_csv:
        return rows.table
    return rows.csv_for_terminal if sys.stdout.isatty() else rows.as_csv


def _statements(arguments: argparse.Namespace) -> list[str] | None:
    """Return what is to be run; None for a session."""
    if arguments.limit < 1:
        raise UsageError(f"--limit {arguments.limit:g}: seconds, 1 or more")
    if arguments.statement is not None and arguments.file:
        raise UsageError("a statement and --file: one of them")
    if arguments.statement is None and not arguments.file:
        if not sys.stdin.isatty() or arguments.json or arguments.csv:
            raise UsageError("no statement, and no terminal for a session; -f - reads stdin")
        return None
    text = arguments.statement if arguments.file is None else _read(arguments.file)
    found = statements.split(text, arguments.engine)
    if not found:
        raise UsageError("no statement in it")
    return found


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no text in UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _host(cluster: placement.Cluster, name: str, engine: Engine) -> Host:
    # Clients run nothing that is always on.
    found = cluster.inventory.group(engine.group) if name == "spark" else cluster.running(engine.group)
    if not found:
        raise LakehouseError(
            f"no host of {cluster.inventory.path} runs {name}",
            command("sql --engine spark", cluster.inventory.path),
        )
    return found[0]


def _session(asked: Asked, engine: Engine) -> int:
    """Give this terminal to the engine's own program; return its exit code."""
    command = nodes.as_account(engine.account(asked), engine.session(asked))
    argv = [*hosts.ssh(asked.host, terminal=True), hosts.as_root(command)]
    code = subprocess.run(argv, check=False).returncode
    return int(outcome.Outcome.DOWN) if code == _LOST else code


def _result(arguments: argparse.Namespace, asked: Asked, found: Outcome, seconds: float) -> Result:
    path, host = arguments.inventory, asked.host.name
    finding: tuple[Finding, ...] = ()
    if found.complaint:
        again = (
            hosts.ping(path, host)
            if found.silent
            else f".venv/bin/lakehouse logs -i {path} {_service(arguments.engine)}"
        )
        grave = _grave(found)
        finding = (
            Finding(f"sql.{_CODES[grave]}", grave, f"{arguments.engine} on {host}", found.complaint, again),
        )
    count = len(asked.statements)
    return Result(
        verb=VERB,
        target=f"{arguments.engine} of {asked.cluster.variable('lakehouse_cluster')}",
        findings=finding,
        facts=(
            f"{len(found.results)} of {counted(count, 'statement')}",
            f"{counted(sum(len(one.rows) for one in found.results), 'row')}",
            f"as {asked.person}",
            f"{seconds:.1f} s",
        ),
        hosts={host: {"answered": not found.silent, "why": found.complaint if found.silent else ""}},
        healthy_next=command("status", path),
        details={
            "engine": arguments.engine,
            "results": rows.documents(found.results),
            "seconds": round(seconds, 1),
        },
    )


def _grave(found: Outcome) -> outcome.Outcome:
    if found.silent:
        return outcome.Outcome.DOWN
    return outcome.Outcome.LIMIT if found.late else outcome.Outcome.DEGRADED


_CODES = {
    outcome.Outcome.DOWN: "silent",
    outcome.Outcome.LIMIT: "limit",
    outcome.Outcome.DEGRADED: "refused",
}


def _service(engine: str) -> str:
    return {"spark": "spark_master", "trino": "trino", "flink": "flink_jobmanager"}[engine]
