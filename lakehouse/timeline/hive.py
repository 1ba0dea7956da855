"""Changes of a Hive table: of its partitions, and of the table itself, as the metastore has them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping

from lakehouse.timeline.commits import Commit, Seen, short
from lakehouse.timeline.source import Table

# Names in the facts of a commit.
_SHOWN = 20
# Of a table; one with more has commits that do not name partitions.
_MOST_PARTITIONS = 20_000
_TIME = re.compile(r"[0-9]{1,11}", re.ASCII)


def look(table: Table, partitions: Callable[[Table], Mapping[str, str]], state: str, now_ms: int) -> Seen:
    """Return the changes since the last look, as one commit: the metastore does not keep the ones between."""
    changed = table.parameters.get("transient_lastDdlTime", "")
    mark = f"{table.partitions}/{changed}"
    previous = json.loads(state) if state else {}
    if previous.get("mark") == mark:
        return Seen(state)
    listed = dict(partitions(table)) if table.partitions else {}
    # A digest, so that values of partitions with secrets of any length take the same room.
    texts = {name: _digest(f"{name}={text}") for name, text in listed.items()}
    next_state = {"mark": mark, "partitions": texts if len(texts) <= _MOST_PARTITIONS else {}}
    before = previous.get("partitions") or {}
    facts = {
        "partitions_added": [name for name in texts if name not in before],
        "partitions_dropped": [name for name in before if name not in texts],
        "partitions_changed": [name for name in texts if before.get(name, texts[name]) != texts[name]],
    }
    action = next((text for name, text in _ACTIONS.items() if facts[name]), "alter") if previous else "create"
    written = [
        listed[name].partition(":")[2] for name in (*facts["partitions_added"], *facts["partitions_changed"])
    ]
    newest = max(map(_seconds, [*written, changed if action == "alter" else ""]))
    some_names = {name: [short(part) for part in names[:_SHOWN]] for name, names in facts.items() if names}
    counts = {f"{name}_count": len(names) for name, names in facts.items() if names}
    commit = Commit(
        _digest(json.dumps(next_state, sort_keys=True)) + (f"@{changed}" if previous else ""),
        action,
        1000 * table.created if action == "create" else 1000 * newest if newest else now_ms,
        table.owner if action == "create" else "",
        facts={**some_names, **counts},
    )
    return Seen(json.dumps(next_state), [commit])


_ACTIONS = {
    "partitions_added": "add partitions",
    "partitions_dropped": "drop partitions",
    "partitions_changed": "change partitions",
}


def _seconds(text: str) -> int:
    """Return a time of the metastore; 0 where a client has written something else."""
    return int(text) if _TIME.fullmatch(text) else 0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
