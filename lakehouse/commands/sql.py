import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from lakehouse import commands, outcome, shared_options
from lakehouse.errors import UsageError
from lakehouse.model import inventory as inventories
from lakehouse.model import placement
from lakehouse.model.inventory import Host
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Result
from lakehouse.remote import hosts, output
from lakehouse.sql import nodes, rows, statements
from lakehouse.sql.engines import ENGINES, Engine
from lakehouse.sql.query import Outcome, Query
from lakehouse.sql.rows import Rows
from plugins.module_utils.lakehouse.counting import counted

VERB = "sql"
# ssh's own code, where it never got there.
_LOST = 255


class Sql(commands.Command):
    """Takes a statement that begins with a comment, -- and a space, for no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; a space before a statement makes no other one of it."""
        return super().parse_args(
            ctx, [f" {word}" if re.match(r"-[^=\s]*\s", word) else word for word in args]
        )


@commands.command(failure=commands.NOT_KNOWN, exclusive=[("as_json", "as_csv")], cls=Sql)
@click.argument("statement", required=False)
@click.option("--engine", type=click.Choice(list(ENGINES)), required=True, help="engine that runs them")
@click.option(
    "-f", "--file", type=click.Path(path_type=Path), metavar="FILE", help="file of statements; - is stdin"
)
@click.option("--as", "person", metavar="USER", show_default="the engine's own user", help="user to run as")
@click.option("--csv", "as_csv", is_flag=True, help="print CSV")
@shared_options.limit(600.0)
@shared_options.as_json
@shared_options.inventory
def command(
    statement: str | None,
    engine: str,
    file: Path | None,
    person: str | None,
    as_csv: bool,
    limit: float,
    as_json: bool,
    inventory: str,
) -> int:
    """Run SQL on an engine, or open a session.

    STATEMENT is one statement, or several with semicolons. Without it and --file, a session begins.

    Exit code: 1 if the engine refuses, 2 if it does not answer, 124 after the timeout; of a session, its own.
    """
    began = time.monotonic()
    if limit < 1:
        raise UsageError(f"--limit {limit:g}: seconds, 1 or more")
    texts = _statements(statement, file, engine, formatted=as_json or as_csv)
    client = ENGINES[engine]
    cluster = placement.read(inventories.load(inventory))
    host = _host(cluster, engine, client)
    user = person or str(cluster.variable("lakehouse_users")[client.user])
    query = Query(cluster, host, user, texts or (), limit)
    output.progress(f"{engine} on {host.name} as {user}")
    if texts is None:
        return _session(query, client)
    answer = client.ask(query)
    if not as_json:
        text = _form(as_csv=as_csv)(answer.results)
        sys.stdout.write(text if not text or text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    return output.end(_result(engine, query, answer, time.monotonic() - began), as_json=as_json)


def _form(*, as_csv: bool) -> Callable[[Sequence[Rows]], str]:
    """Return what makes text of rows; a file or a pipe gets CSV as it is."""
    if not as_csv:
        return rows.table
    return rows.csv_for_terminal if sys.stdout.isatty() else rows.as_csv


def _statements(
    statement: str | None, file: Path | None, engine: str, *, formatted: bool
) -> list[str] | None:
    """Return what is to be run; None for a session."""
    if statement is not None and file:
        raise UsageError("a statement and --file: one of them")
    if statement is None and not file:
        if not sys.stdin.isatty() or formatted:
            raise UsageError("no statement, and no terminal for a session; -f - reads stdin")
        return None
    texts = statements.split(statement or "" if file is None else _read(file), engine)
    if not texts:
        raise UsageError("no statement in it")
    return texts


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: no text in UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _host(cluster: placement.Cluster, name: str, engine: Engine) -> Host:
    # Clients run nothing that is always on.
    places = cluster.inventory.group(engine.group) if name == "spark" else cluster.running(engine.group)
    if not places:
        raise UsageError(
            f"no host of {cluster.inventory.path} runs {name}",
            next_command("sql --engine spark", cluster.inventory.path),
        )
    return places[0]


def _session(query: Query, engine: Engine) -> int:
    """Give this terminal to the engine's own program; return its exit code."""
    program = nodes.as_account(engine.account(query), engine.session(query))
    argv = [*hosts.ssh(query.host, terminal=True), hosts.as_root(program)]
    code = subprocess.run(argv, check=False).returncode
    return int(outcome.Outcome.DOWN) if code == _LOST else code


def _result(engine: str, query: Query, answer: Outcome, seconds: float) -> Result:
    path, host = query.cluster.inventory.path, query.host.name
    finding: tuple[Finding, ...] = ()
    if answer.complaint:
        following = (
            hosts.ping(path, host)
            if answer.silent
            else f".venv/bin/lakehouse logs -i {path} {_service(engine)}"
        )
        grave = _grave(answer)
        finding = (
            Finding(f"sql.{_CODES[grave]}", grave, f"{engine} on {host}", answer.complaint, following),
        )
    count = len(query.statements)
    return Result(
        verb=VERB,
        target=f"{engine} of {query.cluster.variable('lakehouse_cluster')}",
        findings=finding,
        facts=(
            f"{len(answer.results)} of {counted(count, 'statement')}",
            f"{counted(sum(len(result.rows) for result in answer.results), 'row')}",
            f"as {query.user}",
            f"{seconds:.1f} s",
        ),
        hosts={host: {"answered": not answer.silent, "why": answer.complaint if answer.silent else ""}},
        healthy_next=next_command("status", path),
        details={"engine": engine, "results": rows.documents(answer.results), "seconds": round(seconds, 1)},
    )


def _grave(found: Outcome) -> outcome.Outcome:
    if found.silent:
        return outcome.Outcome.DOWN
    return outcome.Outcome.LIMIT if found.late else outcome.Outcome.DEGRADED


_CODES = {outcome.Outcome.DOWN: "silent", outcome.Outcome.LIMIT: "limit", outcome.Outcome.DEGRADED: "refused"}


def _service(engine: str) -> str:
    return {"spark": "spark_master", "trino": "trino", "flink": "flink_jobmanager"}[engine]
