"""The verbs: make a backup, look at those there are, judge one, and go back to one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from lakehouse import inventory
from lakehouse.errors import LakehouseError
from ops import tell
from ops.backup import acting
from ops.backup import restore as work
from ops.outcome import Finding, Outcome, Result
from ops.status import placement

_LONG_SECONDS = 6 * 3600.0
_SECONDS = 30.0
_SHOWN = 20


def main(arguments: argparse.Namespace) -> int:
    """Do what `backup` was asked for."""
    began = time.monotonic()
    if arguments.work == "verify":
        return show(verify(arguments.inventory, arguments.backup), as_json=arguments.json)
    if arguments.backup:
        raise LakehouseError(
            f"{arguments.backup}: a backup gets its name by itself", ".venv/bin/lakehouse backup"
        )
    if arguments.work == "list":
        return show(listed(arguments.inventory), as_json=arguments.json)
    return show(back_up(arguments.inventory, began), as_json=arguments.json)


def restore(arguments: argparse.Namespace) -> int:
    """Go back to a backup."""
    wish = work.Wish(arguments.backup or "", arguments.confirm or "", arguments.to or "")
    return show(work.restore(arguments.inventory, wish, tell.progress), as_json=arguments.json)


def back_up(path: str, began: float) -> Result:
    """Have the repository's host make a backup, as its timer does; LakehouseError where it could not."""
    cluster = placement.read(inventory.load(path))
    host = acting.keeper(cluster)
    # One unit, whoever starts it: there are never two at once, and one goes on when this program is ended.
    acting.act(cluster, {host: "systemctl start lakehouse-backup.service"}, _LONG_SECONDS)
    last = json.loads(acting.must(cluster, {host: acting.last(cluster)}, _SECONDS)[host])
    if last["why"]:
        raise LakehouseError(f"{host}: no backup: {last['why']}", f".venv/bin/lakehouse doctor -i {path}")
    made = acting.program(cluster, "show", last["good"], seconds=_SECONDS)
    uncounted = [table for table in made["tables"] if table["rows"] is None and table["format"] != "view"]
    findings = tuple(
        Finding(
            "backup.uncounted",
            Outcome.DEGRADED,
            f"{table['database']}.{table['name']}",
            f"its rows are not counted: {table['unknown']}",
            f".venv/bin/lakehouse backup -i {path}",
        )
        for table in uncounted
    )
    facts = (*_facts(made), f"{time.monotonic() - began:.0f} s")
    return _result(
        "backup", made["name"], findings, facts, "good", f".venv/bin/lakehouse backup verify -i {path}"
    )


def verify(path: str, name: str) -> Result:
    """Have every byte of a backup read; DOWN is a backup that is damaged."""
    cluster = placement.read(inventory.load(path))
    found = acting.program(cluster, "verify", *([name] if name else []), seconds=_LONG_SECONDS)
    findings = tuple(
        Finding("backup.damaged", Outcome.DOWN, found["name"], line, f".venv/bin/lakehouse backup -i {path}")
        for line in found["problems"][:_SHOWN]
    )
    if findings:
        facts: tuple[str, ...] = (found["problems"][0], f"{len(found['problems'])} in all")
        return _result("verify", found["name"], findings, facts, "damaged", "")
    next_command = f".venv/bin/lakehouse restore {found['name']} -i {path}"
    return _result("verify", found["name"], (), _facts(found), "good", next_command)


def listed(path: str) -> Result:
    """Say which backups there are, the newest first."""
    cluster = placement.read(inventory.load(path))
    names = acting.program(cluster, "list", seconds=_SECONDS)
    facts = (f"{len(names)} backups", *reversed(names))
    target = str(cluster.variable("lakehouse_cluster"))
    return _result("backups", target, (), facts, "listed", f".venv/bin/lakehouse backup verify -i {path}")


def show(result: Result, *, as_json: bool) -> int:
    """Print findings and the last line, or all of it for programs; return the exit code."""
    lines = [*map(str, result.worst), result.last_line]
    said = json.dumps(result.json()) if as_json else "\n".join(lines)
    sys.stdout.write(f"{said}\n")
    return int(result.outcome)


def _facts(made: Any) -> tuple[str, ...]:
    moments = (("T0", made["database"]["at"]), ("T1", made["hdfs"]["at"]))
    stamps = (f"{name} {datetime.fromtimestamp(at, UTC):%H:%M:%SZ}" for name, at in moments)
    return (*stamps, f"{len(made['tables'])} tables", f"{made['bytes'] / 2**30:.1f} GiB")


def _result(  # noqa: PLR0913, PLR0917 -- what a last line has
    verb: str, target: str, findings: tuple[Finding, ...], facts: tuple[str, ...], word: str, after: str
) -> Result:
    return Result(
        verb=verb, target=target, findings=findings, facts=facts, hosts={}, healthy_next=after, summary=word
    )
