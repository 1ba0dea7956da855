"""`lakehouse backup`: the repository's host makes a backup, as its timer does, and this run waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.next_command import command
from lakehouse.report.text import size
from ops.backup import shell
from ops.change.facts import Living
from ops.change.result import Ending, Stopped
from ops.change.run import Request, Running, Work
from ops.status.placement import Cluster
from plugins.module_utils.lakehouse import backup_manifest, checked_document
from plugins.module_utils.lakehouse.checked_document import DocumentError
from plugins.module_utils.lakehouse.counting import counted

VERB = "backup"
UNIT = "lakehouse-backup.service"
_LONG_SECONDS = 6 * 3600.0
_SECONDS = 30.0


def prepare(living: Living, request: Request) -> Work:
    """Return the plan: one backup. The name of the last good one tells later whether there is a newer."""
    host = shell.keeper(living.cluster)
    resumed = request.stopped is not None
    before = request.arguments["before"] if resumed else str(_last(living.cluster, host).get("good", ""))
    return Work(
        target=str(living.cluster.variable("lakehouse_cluster")),
        arguments={"before": before},
        plan=[{"host": host, "unit": UNIT}],
        lines=[f"{VERB}: {UNIT} on {host}"],
        question="",
        do=partial(_do, host, before, request.path, resumed),
    )


def _do(host: str, before: str, path: str, resumed: bool, running: Running) -> tuple[str, ...]:
    cluster = running.living.cluster
    # One unit, for every caller: there are never two at once, and one goes on when this program is ended.
    state = shell.act(cluster, {host: f"systemctl is-active {UNIT} || true"}, _SECONDS)[host].text
    last = _last(cluster, host)
    if state in {"activating", "active"} or not (resumed and _newer(last, before)):
        running.holds()
        shell.act(cluster, {host: f"systemctl start {UNIT}"}, _LONG_SECONDS)
        last = _last(cluster, host)
    if why := fault(last, before):
        raise Stopped(Ending.FAILED, f"{host}: no backup: {why}", command("doctor", path))
    made = shell.program(cluster, "show", last["good"], seconds=_SECONDS, read=backup_manifest.manifest)
    running.done(host, VERB, name=made["name"])
    if uncounted := [one for one in made["tables"] if one["rows"] is None and one["format"] != "view"]:
        for one in uncounted:
            running.say(f"{one['database']}.{one['name']}: its rows are not counted: {one['unknown']}")
        first = f"{uncounted[0]['database']}.{uncounted[0]['name']}"
        more = f" and {len(uncounted) - 1} more" if uncounted[1:] else ""
        fact = f"{made['name']} is good, but the rows of {first}{more} could not be counted"
        raise Stopped(Ending.HALFWAY, fact, "")
    return (made["name"], *facts(made))


def facts(made: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the last line says of a backup."""
    moments = (("T0", made["database"]["at"]), ("T1", made["hdfs"]["at"]))
    stamps = (f"{name} {datetime.fromtimestamp(at, UTC):%H:%M:%SZ}" for name, at in moments)
    return (*stamps, counted(len(made["tables"]), "table"), size(int(made["bytes"])))


def _last(cluster: Cluster, host: str) -> dict[str, Any]:
    """Return what came of the last backup; nothing before the first."""
    said = shell.must(cluster, {host: f"{shell.last(cluster)} 2>/dev/null || true"}, _SECONDS)[host]
    if not said:
        return {}
    try:
        return backup_manifest.last(checked_document.parse(said, "last.json"))
    except DocumentError as error:
        raise LakehouseError(f"{host}: {error}", f"{shell.last(cluster)}, on {host}") from error


def fault(last: Mapping[str, Any], before: str) -> str:
    """Return why there is no new backup, by what came of the last one; empty where it is good, and new."""
    if not last:
        return "it has not begun"
    return str(last["why"]) or ("" if _newer(last, before) else f"the last one is still {last['good']}")


def _newer(last: Mapping[str, Any], before: str) -> bool:
    return bool(last) and not last["why"] and str(last["good"]) > before
