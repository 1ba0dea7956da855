"""`lakehouse backup`: start the backup unit of the repository's host, as its timer does, and wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lakehouse.backup import shell
from lakehouse.errors import LakehouseError
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command
from lakehouse.report.text import size
from lakehouse.rolling.facts import Living
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.rolling.run import Request, Running, Work
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.counting import counted, first_and_rest

VERB = "backup"
UNIT = "lakehouse-backup.service"
_LONG_SECONDS = 6 * 3600.0
_SECONDS = 30.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: one backup. The name of the last good one is kept, to recognize a newer one."""
    host = shell.keeper(living.cluster)
    resumed = request.stopped is not None
    previous = request.arguments["before"] if resumed else str(_last(living.cluster, host).get("good", ""))
    return Work(
        target=str(living.cluster.variable("lakehouse_cluster")),
        arguments={"before": previous},
        plan=[{"host": host, "unit": UNIT}],
        lines=[f"{VERB}: {UNIT} on {host}"],
        question="",
        do=partial(_do, host, previous, request.path, resumed),
    )


def _do(host: str, previous: str, path: str, resumed: bool, running: Running) -> tuple[str, ...]:
    cluster = running.living.cluster
    # One unit, for every caller: there are never two at once, and one goes on when this program is ended.
    state = shell.act(cluster, {host: f"systemctl is-active {UNIT} || true"}, _SECONDS)[host].text
    last = _last(cluster, host)
    if state in {"activating", "active"} or not (resumed and _newer(last, previous)):
        running.holds()
        shell.act(cluster, {host: f"systemctl start {UNIT}"}, _LONG_SECONDS)
        last = _last(cluster, host)
    if why := fault(last, previous):
        raise Stopped(Ending.FAILED, f"{host}: no backup: {why}", command("doctor", path))
    manifest = shell.program(cluster, "show", last["good"], seconds=_SECONDS, read=backup_manifest.manifest)
    running.done(host, VERB, name=manifest["name"])
    tables = [table for table in manifest["tables"] if table["format"] != "view"]
    if uncounted := [table for table in tables if table["rows"] is None]:
        for table in uncounted:
            running.say(f"{table['database']}.{table['name']}: its rows are not counted: {table['unknown']}")
        names = first_and_rest([f"{table['database']}.{table['name']}" for table in uncounted])
        fact = f"{manifest['name']} is good, but the rows of {names} could not be counted"
        raise Stopped(Ending.HALFWAY, fact, "")
    return (manifest["name"], *facts(manifest))


def facts(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the facts of a backup for the last line of a command."""
    moments = (("T0", manifest["database"]["at"]), ("T1", manifest["hdfs"]["at"]))
    stamps = (f"{name} {datetime.fromtimestamp(seconds, UTC):%H:%M:%SZ}" for name, seconds in moments)
    return (*stamps, counted(len(manifest["tables"]), "table"), size(int(manifest["bytes"])))


def _last(cluster: Cluster, host: str) -> dict[str, Any]:
    """Return the result of the last backup; empty before the first."""
    output = shell.must(cluster, {host: f"{shell.last(cluster)} 2>/dev/null || true"}, _SECONDS)[host]
    if not output:
        return {}
    try:
        return backup_manifest.last(checked_document.parse(output, "last.json"))
    except DocumentError as error:
        raise LakehouseError(f"{host}: {error}", f"{shell.last(cluster)}, on {host}") from error


def fault(last: Mapping[str, Any], previous: str) -> str:
    """Return why the last result is not a new good backup; empty where it is."""
    if not last:
        return "it has not begun"
    return str(last["why"]) or ("" if _newer(last, previous) else f"the last one is still {last['good']}")


def _newer(last: Mapping[str, Any], previous: str) -> bool:
    return bool(last) and not last["why"] and str(last["good"]) > previous
