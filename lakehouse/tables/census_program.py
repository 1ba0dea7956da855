"""Run the census, or another program of Spark, on the first client host, and make a result of its reply.

The program and the modules that it imports travel with the command: nothing is installed on a host.
"""

from __future__ import annotations

import base64
import io
import json
import shlex
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse import host_code, outcome
from lakehouse.census.contents import LEVELS
from lakehouse.census.growth import Forecast, Size, forecast
from lakehouse.census.report import WARNING, Limits
from lakehouse.errors import UsageError
from lakehouse.maybe import Answer
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Result
from lakehouse.remote import hosts, openssh, output
from lakehouse.report.text import size
from lakehouse.run import ROOT
from plugins.module_utils.lakehouse.counting import counted

PACKAGE = "lakehouse.census"
COLLECT, REPORT = "collect", "report"
_LAUNCHER = "import sys\nfrom {package}.__main__ import main\n\nsys.exit(main())\n"
# Spark's error class of a missing table.
_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
# A date of no meaning: the same code is the same archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_SCRIPT = """\
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' HUP INT TERM
base64 -d > "$folder/modules.zip"
printf '%s' {launcher} > "$folder/program.py"
{submit} --py-files "$folder/modules.zip" "$folder/program.py" {arguments}
"""


@dataclass(frozen=True)
class Program:
    """A program of Spark on a host, as an account, with its verb and its options.

    `command` is that of the command line, and a whole reply of the program has `whole`.
    """

    cluster: Cluster
    host: Host
    account: str
    verb: str
    options: tuple[str, ...]
    command: str
    whole: str
    package: str = PACKAGE
    # The main program, which imports modules of the archive; that of the package if empty.
    launcher: str = ""

    def script(self) -> str:
        """Return the shell command, which reads the archive of its modules on stdin."""
        home = f"{self.host.variables['lakehouse_install_dir']}/spark/current"
        script = _SCRIPT.format(
            launcher=shlex.quote(self.launcher or _LAUNCHER.format(package=self.package)),
            submit=shlex.quote(f"{home}/bin/spark-submit"),
            arguments=shlex.join([self.verb, *self.options]),
        )
        return f"cd / && exec runuser -u {shlex.quote(self.account)} -- sh -c {shlex.quote(script)}"


@dataclass(frozen=True)
class Reply:
    """The exit code of the program, the lines of its stdout, and the last one of its stderr."""

    code: Answer[int]
    document: Mapping[str, Any]
    complaint: str


def collector(cluster: Cluster, level: str = LEVELS[-1]) -> Program:
    """Return the program that writes units; UsageError without a client host or a NameNode."""
    account = str(cluster.variable("lakehouse_users")["spark"])
    options = ("--user", account, "--level", level)
    return on_client(cluster, COLLECT, options, command="tables census", whole="tables")


def reporter(cluster: Cluster, idle_days: int = Limits.idle_days) -> Program:
    """Return the program that reports findings; UsageError without a client host or a NameNode."""
    options = ("--idle-days", str(idle_days))
    return on_client(cluster, REPORT, options, command="tables report", whole="formats")


def on_client(  # noqa: PLR0913 -- what differs between programs
    cluster: Cluster,
    verb: str,
    options: tuple[str, ...],
    *,
    command: str,
    whole: str,
    package: str = PACKAGE,
) -> Program:
    """Return a program on the first client host; UsageError without a client host or a NameNode."""
    host, namenode = client(cluster), cluster.endpoint("namenode_http")
    if namenode is None:
        raise _missing(cluster, "namenode")
    account = str(cluster.variable("lakehouse_users")["spark"])
    options = ("--webhdfs", namenode.uri, *options)
    return Program(cluster, host, account, verb, options, command, whole, package)


def client(cluster: Cluster) -> Host:
    """Return the host that programs of PySpark run on; UsageError without a client host."""
    hosts_of_clients = cluster.inventory.group("clients")
    if not hosts_of_clients:
        raise _missing(cluster, "clients")
    return hosts_of_clients[0]


def _missing(cluster: Cluster, group: str) -> UsageError:
    return UsageError(f"no host of {cluster.inventory.path} is in the group {group}; add one to hosts.yml")


def archive(package: str = PACKAGE) -> bytes:
    """Return the modules of a package and all that they import here, as a zip file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in host_code.folders(package):
            archive.writestr(zipfile.ZipInfo(f"{folder}/", _DATE), b"")
        for path in host_code.modules(package):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, (ROOT / path).read_bytes())
    return packed.getvalue()


def run(program: Program, limit: float) -> Reply:
    """Run the program with a timeout in seconds."""
    name = program.host.name
    lines = output.CapturedLines([name])
    text = base64.b64encode(archive(program.package)).decode()
    codes = openssh.run({name: program.script()}, [program.host], lines, limit, text)
    errors = [line for line in lines.of(name, wrong=True) if line.strip()]
    return Reply(codes[name], document(lines.of(name, wrong=False)), errors[-1].strip() if errors else "")


def document(lines: Iterable[str]) -> Mapping[str, Any]:
    """Return the last line that is an object of JSON; empty without one: the JVM prints lines, too."""
    for line in reversed([line for line in lines if line.startswith("{")]):
        try:
            counts = json.loads(line)
        except ValueError:
            continue
        if isinstance(counts, dict):
            return counts
    return {}


def result(program: Program, reply: Reply, seconds: float) -> Result:
    """Return the result of a command from the reply of its program."""
    path = program.cluster.inventory.path
    facts = tuple(_FACTS[program.verb](reply.document)) if is_whole(program, reply) else ()
    following = "tables report" if program.verb == COLLECT else "tables census"
    return Result(
        verb=program.command,
        target=str(program.cluster.variable("lakehouse_cluster")),
        findings=tuple(failures(program, reply) or _FINDINGS[program.verb](program, reply.document)),
        facts=(*facts, f"{seconds:.1f} s"),
        hosts={program.host.name: {"answered": reply.code.known}},
        healthy_next=next_command(following, path),
        details={**_details(program, reply), "seconds": round(seconds, 1)},
    )


def is_whole(program: Program, reply: Reply) -> bool:
    """Return whether a reply has the result of its program."""
    return program.whole in reply.document


def _details(program: Program, reply: Reply) -> Mapping[str, Any]:
    """Return what programs get; the findings of a report keep their cost, under another name."""
    details = dict(reply.document)
    if program.verb == REPORT and "findings" in details:
        details["tables"] = details.pop("findings")
    return details


def failures(program: Program, reply: Reply) -> list[Finding]:
    """Return why there is no reply, or no whole one."""
    path, host = program.cluster.inventory.path, program.host.name
    if not reply.code.known:
        return [Finding("tables.silent", outcome.Outcome.DOWN, host, reply.code.why, hosts.ping(path, host))]
    if reply.code.value == openssh.TIMED_OUT:
        fact = "ended by --limit"
        if program.verb == COLLECT:
            # The commit is the last step, and a host may go on for a moment.
            fact = f"{fact}; units may have been written"
        return [Finding("tables.limit", outcome.Outcome.LIMIT, host, fact, next_command("status", path))]
    if is_whole(program, reply):
        return []
    fact = str(reply.document.get("error") or reply.complaint or f"exit code {reply.code.value}")
    if reply.document.get("conflict"):
        following = next_command(program.command, path)
        return [Finding("tables.conflict", outcome.Outcome.DOWN, host, fact, following)]
    if program.verb != COLLECT and _NO_TABLE in fact:
        following = next_command("tables census", path)
        return [Finding("tables.failed", outcome.Outcome.DOWN, host, "no census has been written", following)]
    return [Finding("tables.failed", outcome.Outcome.DOWN, host, fact, next_command("doctor", path))]


def _facts_of_units(counts: Mapping[str, Any]) -> Iterable[str]:
    yield counted(int(counts["tables"]), "table")
    if not counts["written"]:
        yield "metadata is up to date"
        return
    yield f"{counts['changed']} changed"
    yield f"{counts['dropped']} dropped"
    yield f"{counts['skipped']} up to date"
    yield counted(int(counts["units"]), "unit")


def _unreadable(program: Program, counts: Mapping[str, Any]) -> Iterable[Finding]:
    following = next_command("risky-tables", program.cluster.inventory.path)
    for row in counts["failed"]:
        yield Finding("tables.unreadable", outcome.Outcome.DEGRADED, row["table"], row["reason"], following)
    if warning := counts.get("warning"):
        following = next_command("tables census", program.cluster.inventory.path)
        yield Finding("tables.derived", outcome.Outcome.DEGRADED, program.host.name, str(warning), following)


def growth(report: Mapping[str, Any]) -> Forecast | None:
    """Return the forecast of a report; None from less than a day of censuses."""
    return forecast([Size(**row) for row in report["history"]])


def _facts_of_report(report: Mapping[str, Any]) -> Iterable[str]:
    for row in report["formats"]:
        yield f"{row['table_count']} {row['name']}, {size(row['size_bytes'])}"
    if expected := growth(report):
        yield str(expected)


def _of_report(program: Program, report: Mapping[str, Any]) -> Iterable[Finding]:
    """Yield the findings of a report; the statement that fixes one runs on Spark."""
    path = program.cluster.inventory.path
    for row in report["findings"]:
        severity = outcome.Outcome.DEGRADED if row["severity"] == WARNING else outcome.Outcome.OK
        fact = f"{row['fact']} ({counted(row['files'], 'file')}, {size(row['size_bytes'])})"
        following = next_command(f"sql --engine spark {shlex.quote(row['spark_sql'])}", path)
        name = f"{row['workspace']}.{row['table_name']}"
        yield Finding(f"tables.{row['code']}", severity, name, fact, following)


_FACTS = {COLLECT: _facts_of_units, REPORT: _facts_of_report}
_FINDINGS = {COLLECT: _unreadable, REPORT: _of_report}
