"""Verify a backup, and list all."""

from __future__ import annotations

from lakehouse.backup import create, shell
from lakehouse.model import inventory, placement
from lakehouse.next_command import command
from lakehouse.outcome import Finding, Outcome, Result
from plugins.module_utils.lakehouse import backup_manifest
from plugins.module_utils.lakehouse.counting import counted

_LONG_SECONDS = 6 * 3600.0
_SECONDS = 30.0
_SHOWN = 20


def verify(path: str, name: str | None) -> Result:
    """Verify the checksums of a backup; DOWN is a damaged one."""
    cluster = placement.read(inventory.load(path))
    document = shell.program(
        cluster, "verify", *([name] if name else []), seconds=_LONG_SECONDS, read=backup_manifest.verified
    )
    findings = tuple(
        Finding("backup.damaged", Outcome.DOWN, document["name"], line, command("backup", path))
        for line in document["problems"][:_SHOWN]
    )
    if findings:
        facts: tuple[str, ...] = (document["problems"][0], f"{len(document['problems'])} in all")
        return _result("verify", document["name"], findings, facts, "damaged", "")
    next_command = command(f"restore {document['name']}", path)
    return _result("verify", document["name"], (), create.facts(document), "good", next_command)


def listed(path: str) -> Result:
    """List the backups, the newest first."""
    cluster = placement.read(inventory.load(path))
    document = shell.program(cluster, "list", seconds=_SECONDS, read=backup_manifest.listed)
    names = [f"{row['name']} (damaged)" if row["problems"] else row["name"] for row in reversed(document)]
    facts = (counted(len(names), "backup"), *names)
    target = str(cluster.variable("lakehouse_cluster"))
    return _result("backups", target, (), facts, "listed", command("backup verify", path))


def _result(  # noqa: PLR0913, PLR0917 -- what a last line has
    verb: str, target: str, findings: tuple[Finding, ...], facts: tuple[str, ...], word: str, after: str
) -> Result:
    return Result(
        verb=verb, target=target, findings=findings, facts=facts, hosts={}, healthy_next=after, summary=word
    )
