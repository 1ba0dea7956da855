"""Ask the timeline of a cluster, on the host of its database."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from lakehouse import durations
from lakehouse.errors import UsageError
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Outcome
from lakehouse.remote import hosted
from plugins.module_utils.lakehouse import checked_document
from plugins.module_utils.lakehouse.checked_document import Optional
from plugins.module_utils.lakehouse.counting import counted

PROGRAM = "/usr/local/sbin/lakehouse-timeline"
# An older look at all tables is a fault.
MOST_AGE_SECONDS = 300
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)")
_COMMIT = {
    "number": checked_document.count,
    "committed": _TIME,
    "database": checked_document.text,
    "table": checked_document.text,
    "format": checked_document.text,
    "action": checked_document.text,
    "commit": checked_document.text,
    "version": checked_document.count,
    "author": checked_document.text,
    "engine": checked_document.text,
    "details": Optional(checked_document.unchecked),
}
_TABLE = {"database": checked_document.text, "table": checked_document.text}
_REPLY = {
    "commits": [_COMMIT],
    "abandoned": [{**_TABLE, "action": checked_document.text, "overdue_seconds": checked_document.number}],
    "troubled": [{**_TABLE, "fault": checked_document.text, "lag": checked_document.text}],
    "subscribers": [{"name": checked_document.text, "fault": checked_document.text}],
    "looked": checked_document.time,
}
# Facts of a commit that its line shows, each with its noun.
_SHOWN = {
    "added_records": "row", "numOutputRows": "row", "added_data_files": "file", "numAddedFiles": "file",
    "partitions_added_count": "partition", "partitions_dropped_count": "partition",
}  # fmt: skip


def ask(cluster: Cluster, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the reply to a request of `lakehouse.timeline.question`; LakehouseError, UsageError."""
    if not cluster.variable("lakehouse_timeline_enabled"):
        raise UsageError(f"{cluster.inventory.path}: lakehouse_timeline_enabled is false")
    host = cluster.active("postgresql")
    with hosted.run(cluster, host, [PROGRAM, "show"], request, seconds) as (line, _):
        following = next_command("doctor", cluster.inventory.path)
        return hosted.document(line, _REPLY, "the timeline", following)


def milliseconds(text: str, now: float | None = None) -> int:
    """Return a moment: a time of ISO 8601, in UTC without a zone, or a duration before now; UsageError."""
    if (ago := durations.seconds(text)) is not None:
        return int(((time.time() if now is None else now) - ago) * 1000)
    if (moment := durations.moment(text)) is None:
        raise UsageError(f"{text}: such as 10m, 2h, 1d, 2026-01-31 or 2026-01-31T10:00 (UTC)")
    return int(moment.timestamp() * 1000)


def line(commit: Mapping[str, Any]) -> str:
    """Return a commit as a line for people."""
    moment = datetime.fromisoformat(commit["committed"]).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    details = commit["details"] or {}
    facts = [
        counted(details[name], unit) for name, unit in _SHOWN.items() if isinstance(details.get(name), int)
    ]
    words = [commit["action"], *facts, *([f"by {commit['author']}"] if commit["author"] else [])]
    engine = [commit["engine"]] if commit["engine"] else []
    name = f"{commit['database']}.{commit['table']}"
    return f"{moment}  {commit['format']:7}  {name}  {commit['commit']}  {', '.join([*words, *engine])}"


def findings(cluster: Cluster, reply: Mapping[str, Any], now: float) -> Iterable[Finding]:
    """Yield what is wrong with the timeline, and with the tables on it."""
    path = cluster.inventory.path
    host = cluster.active("postgresql").name
    doctor = next_command("doctor", path)
    age = now - reply["looked"]
    if age > MOST_AGE_SECONDS:
        fact = f"all tables were looked at last {age / 60:.0f} minutes ago"
        logs = f"{next_command('exec --group postgresql', path)} -- journalctl -n 5 -u lakehouse-timeline"
        yield Finding("timeline.old", Outcome.DEGRADED, host, fact, logs)
    for row in reply["troubled"]:
        name = f"{row['database']}.{row['table']}"
        if row["fault"]:
            following = next_command("risky-tables", path)
            yield Finding("timeline.unreadable", Outcome.DEGRADED, name, row["fault"], following)
        if row["lag"]:
            yield Finding(
                "timeline.lag", Outcome.DEGRADED, name, row["lag"], next_command("tables census", path)
            )
    for row in reply["abandoned"]:
        fact = f"a commit ({row['action']}) has begun, and is silent for {row['overdue_seconds']} s too long"
        yield Finding(
            "timeline.abandoned", Outcome.DEGRADED, f"{row['database']}.{row['table']}", fact, doctor
        )
    for row in reply["subscribers"]:
        yield Finding("timeline.subscriber", Outcome.DEGRADED, row["name"], row["fault"], doctor)
