"""Run the census on the first client host, and make a result of its reply.

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
from lakehouse.errors import UsageError
from lakehouse.maybe import Answer
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Result
from lakehouse.remote import hosts, openssh, output
from lakehouse.run import ROOT
from plugins.module_utils.lakehouse.counting import counted

PACKAGE = "lakehouse.census"
_VERB = "tables census"
_LAUNCHER = "import sys\nfrom lakehouse.census.__main__ import main\n\nsys.exit(main())\n"
# A date of no meaning: the same code is the same archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_SCRIPT = """\
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
base64 -d > "$folder/census.zip"
printf '%s' {launcher} > "$folder/census.py"
{submit} --py-files "$folder/census.zip" "$folder/census.py" {arguments}
"""


@dataclass(frozen=True)
class Program:
    """The program of the census on a host, as an account, with its arguments."""

    cluster: Cluster
    host: Host
    account: str
    arguments: tuple[str, ...]

    def script(self) -> str:
        """Return the shell command, which reads the archive of its modules on stdin."""
        home = f"{self.host.variables['lakehouse_install_dir']}/spark/current"
        script = _SCRIPT.format(
            launcher=shlex.quote(_LAUNCHER),
            submit=shlex.quote(f"{home}/bin/spark-submit"),
            arguments=shlex.join(self.arguments),
        )
        return f"cd / && exec runuser -u {shlex.quote(self.account)} -- sh -c {shlex.quote(script)}"


@dataclass(frozen=True)
class Reply:
    """The exit code of the program, the lines of its stdout, and the last one of its stderr."""

    code: Answer[int]
    document: Mapping[str, Any]
    complaint: str


def of(cluster: Cluster, level: str) -> Program:
    """Return the census of a cluster; UsageError where it has no client host or no NameNode."""
    places = cluster.inventory.group("clients")
    namenode = cluster.endpoint("namenode_http")
    if not places or namenode is None:
        missing = "clients" if namenode else "namenode"
        raise UsageError(
            f"no host of {cluster.inventory.path} is in the group {missing}; add one to hosts.yml"
        )
    account = str(cluster.variable("lakehouse_users")["spark"])
    arguments = ("--webhdfs", namenode.uri, "--user", account, "--level", level)
    return Program(cluster, places[0], account, arguments)


def archive() -> bytes:
    """Return the modules of the program and all that they import here, as a zip file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in host_code.folders(PACKAGE):
            archive.writestr(zipfile.ZipInfo(f"{folder}/", _DATE), b"")
        for path in host_code.modules(PACKAGE):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, (ROOT / path).read_bytes())
    return packed.getvalue()


def run(program: Program, limit: float) -> Reply:
    """Run the program with a timeout in seconds."""
    name = program.host.name
    lines = output.CapturedLines([name])
    text = base64.b64encode(archive()).decode()
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
    """Return the result of the command."""
    path = program.cluster.inventory.path
    counts = reply.document
    findings = tuple(_findings(program, reply))
    facts: tuple[str, ...] = (f"{seconds:.1f} s",)
    if "tables" in counts:
        facts = (*_facts(counts), *facts)
    return Result(
        verb=_VERB,
        target=str(program.cluster.variable("lakehouse_cluster")),
        findings=findings,
        facts=facts,
        hosts={program.host.name: {"answered": reply.code.known}},
        healthy_next=next_command("tables report", path),
        details={**counts, "seconds": round(seconds, 1)},
    )


def _facts(counts: Mapping[str, Any]) -> Iterable[str]:
    yield counted(int(counts["tables"]), "table")
    if not counts["written"]:
        yield "metadata is up to date"
        return
    yield f"{counts['changed']} changed"
    yield f"{counts['dropped']} dropped"
    yield f"{counts['skipped']} up to date"
    yield counted(int(counts["units"]), "unit")


def _findings(program: Program, reply: Reply) -> Iterable[Finding]:
    path, host = program.cluster.inventory.path, program.host.name
    if not reply.code.known:
        yield Finding("tables.silent", outcome.Outcome.DOWN, host, reply.code.why, hosts.ping(path, host))
        return
    if reply.code.value == openssh.TIMED_OUT:
        fact = "ended by --limit; nothing was written"
        yield Finding("tables.limit", outcome.Outcome.LIMIT, host, fact, next_command("status", path))
        return
    if "tables" not in reply.document:
        fact = str(reply.document.get("error") or reply.complaint or f"exit code {reply.code.value}")
        yield Finding("tables.failed", outcome.Outcome.DOWN, host, fact, next_command("doctor", path))
        return
    for row in reply.document["failed"]:
        following = next_command("risky-tables", path)
        yield Finding("tables.unreadable", outcome.Outcome.DEGRADED, row["table"], row["reason"], following)
