"""Run the upkeep of tables by the inventory's policies on the first client host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lakehouse.model import defaults
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.report.text import size
from lakehouse.tables import census_program
from lakehouse.tables.census_program import Program, Reply
from plugins.module_utils.lakehouse.counting import counted

PACKAGE = "lakehouse.upkeep"
MAINTAIN, PLAN = "maintain", "plan"
_WHOLE = {MAINTAIN: "actions", PLAN: "plan"}
_COMMAND = "tables maintain"


def maintainer(cluster: Cluster, verb: str, pattern: str, *, scan: bool = False) -> Program:
    """Return the program that runs or prints a plan; UsageError without a client host or a NameNode.

    It has the arguments of the timer's unit (roles/upkeep/vars/main.yml).
    """
    account, data = str(cluster.variable("lakehouse_users")["spark"]), cluster.variable("lakehouse_data_dir")
    options = {
        "--user": account,
        "--lock": f"{data}/spark/upkeep.lock",
        "--root": cluster.variable("lakehouse_root") if cluster.variable("lakehouse_catalog_enabled") else "",
        "--pins-hours": _variable(cluster, "catalog", "catalog_alert_hours"),
        "--policies": json.dumps(_variable(cluster, "upkeep", "upkeep_policies")),
        "--minutes": _variable(cluster, "upkeep", "upkeep_minutes"),
        "--cores": _variable(cluster, "upkeep", "upkeep_cores"),
    }
    words = [f"{name}={value}" for name, value in options.items()]
    return census_program.on_client(
        cluster, verb, (*words, *(["--scan"] if scan else []), "--pattern", pattern),
        command=_COMMAND, whole=_WHOLE[verb], package=PACKAGE,
    )  # fmt: skip


def _variable(cluster: Cluster, role: str, name: str) -> Any:
    return census_program.client(cluster).variables.get(name, defaults.role(role)[name])


def result(program: Program, reply: Reply, seconds: float) -> Result:
    """Return the result of the command from the reply of its program."""
    is_whole = census_program.is_whole(program, reply)
    return Result(
        verb=program.command,
        target=str(program.cluster.variable("lakehouse_cluster")),
        findings=tuple(_findings(program, reply) if is_whole else census_program.failures(program, reply)),
        facts=(*(_facts(program, reply.document) if is_whole else ()), f"{seconds:.1f} s"),
        hosts={program.host.name: {"answered": reply.code.known}},
        healthy_next=next_command("tables report", program.cluster.inventory.path),
        details={**reply.document, "seconds": round(seconds, 1)},
    )


def _facts(program: Program, document: Mapping[str, Any]) -> Iterator[str]:
    rows = document[program.whole]
    yield counted(len(rows), "action")
    if program.verb == PLAN:
        yield f"about {sum(row['seconds'] for row in rows):.0f} s of work"
        return
    for outcome in ("failed", "refused", "no time left"):
        if count := sum(row["outcome"] == outcome for row in rows):
            yield f"{count} {outcome}"


def _findings(program: Program, reply: Reply) -> Iterator[Finding]:
    path = program.cluster.inventory.path
    report = next_command("tables report", path)
    for row in reply.document[program.whole]:
        following = next_command(f"{_COMMAND} {row['table']}", path)
        if program.verb == PLAN:
            cost = f"{counted(row['files'], 'file')}, {size(row['bytes'])}, about {row['seconds']:.0f} s"
            fact, outcome = f"{row['reason']} ({cost})", Outcome.OK
        elif row["outcome"] == "done":
            fact, outcome, following = _change(row), Outcome.OK, report
        else:
            fact, outcome = row["error"] or row["outcome"], Outcome.DEGRADED
            outcome = Outcome.OK if row["outcome"] == "no time left" else outcome
        yield Finding(f"tables.{row['action']}", outcome, row["table"], fact, following)
    for line in reply.document["warnings"]:
        yield Finding("tables.upkeep", Outcome.OK, program.host.name, line, report)


def _change(row: Mapping[str, Any]) -> str:
    """Return files, bytes and seconds of a scan before and after an action."""
    text = (
        f"{row['files_before']} to {counted(row['files_after'], 'file')},"
        f" {size(row['bytes_before'])} to {size(row['bytes_after'])}"
    )
    scan = row["scan_after"] is not None
    return f"{text}, scan {row['scan_before']:.1f} to {row['scan_after']:.1f} s" if scan else text
