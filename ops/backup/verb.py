"""The verbs: make a backup, look at those there are, judge one, and go back to one."""

from __future__ import annotations

import argparse
import json
import sys

from lakehouse import inventory
from lakehouse.errors import UsageError
from lakehouse.next_command import command
from ops.backup import create, shell, table_restore
from ops.backup import restore as whole
from ops.change import run
from ops.change.facts import Living
from ops.change.run import Request, Work
from ops.outcome import Finding, Outcome, Result
from ops.status import placement
from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.counting import counted

BACKUP, RESTORE = create.VERB, whole.VERB
_LONG_SECONDS = 6 * 3600.0
_SECONDS = 30.0
_SHOWN = 20


def main(options: argparse.Namespace) -> int:
    """Do what `backup` was asked for."""
    if options.work == "verify":
        return _show(verify(options.inventory, options.backup), as_json=options.json)
    if options.backup:
        raise UsageError(
            f"{options.backup}: a backup gets its name by itself", command("backup", options.inventory)
        )
    if options.work == "list":
        return _show(listed(options.inventory), as_json=options.json)
    return run.carry_out(options, BACKUP, create.prepare, {})


def restore(options: argparse.Namespace) -> int:
    """Go back to a backup: with the cluster, a database or a table."""
    arguments = {
        "backup": options.backup or "",
        "table": options.table or "",
        "database": options.database or "",
        "as": options.other or "",
        "to": options.to or "",
    }
    if arguments["as"] and not arguments["table"]:
        raise UsageError("--as is another name for the one table that --table names")
    return run.carry_out(options, RESTORE, prepare_restore, arguments)


def prepare_restore(living: Living, request: Request) -> Work:
    """Return the plan of a restore, of the whole cluster or of what the arguments name."""
    some = request.arguments["table"] or request.arguments["database"]
    return table_restore.prepare(living, request) if some else whole.prepare(living, request)


def verify(path: str, name: str) -> Result:
    """Have every byte of a backup read; DOWN is a backup that is damaged."""
    cluster = placement.read(inventory.load(path))
    found = shell.program(
        cluster, "verify", *([name] if name else []), seconds=_LONG_SECONDS, read=backup_manifest.verified
    )
    findings = tuple(
        Finding("backup.damaged", Outcome.DOWN, found["name"], line, command("backup", path))
        for line in found["problems"][:_SHOWN]
    )
    if findings:
        facts: tuple[str, ...] = (found["problems"][0], f"{len(found['problems'])} in all")
        return _result("verify", found["name"], findings, facts, "damaged", "")
    next_command = command(f"restore {found['name']}", path)
    return _result("verify", found["name"], (), create.facts(found), "good", next_command)


def listed(path: str) -> Result:
    """Say which backups there are, the newest first."""
    cluster = placement.read(inventory.load(path))
    found = shell.program(cluster, "list", seconds=_SECONDS, read=backup_manifest.listed)
    names = [f"{one['name']} (damaged)" if one["problems"] else one["name"] for one in reversed(found)]
    facts = (counted(len(names), "backup"), *names)
    target = str(cluster.variable("lakehouse_cluster"))
    return _result("backups", target, (), facts, "listed", command("backup verify", path))


def _show(result: Result, *, as_json: bool) -> int:
    """Print findings and the last line, or all of it for programs; return the exit code."""
    lines = [*map(str, result.worst), result.last_line]
    said = json.dumps(result.json()) if as_json else "\n".join(lines)
    sys.stdout.write(f"{said}\n")
    return int(result.outcome)


def _result(  # noqa: PLR0913, PLR0917 -- what a last line has
    verb: str, target: str, findings: tuple[Finding, ...], facts: tuple[str, ...], word: str, after: str
) -> Result:
    return Result(
        verb=verb, target=target, findings=findings, facts=facts, hosts={}, healthy_next=after, summary=word
    )
