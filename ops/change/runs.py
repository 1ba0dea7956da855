"""`lakehouse runs` and `lakehouse resume`: what was begun from this machine, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lakehouse.next_command import command
from ops.backup import create, restore, table_restore
from ops.catalog import restoring as catalog
from ops.change import departure, joining, maintenance, removal, restart
from ops.change.journal import Run
from ops.change.run import Prepare
from ops.outcome import SCHEMA
from ops.status.screen import age, aligned
from ops.upgrade import preparation
from plugins.module_utils.lakehouse.counting import counted

# How many are shown; the others are there for programs.
_SHOWN = 20
# What prepares a run again that has stopped on its way: what is done is left out, or found done.
VERBS: dict[str, Prepare] = {
    restart.VERB: restart.prepare,
    maintenance.VERB: maintenance.prepare,
    joining.VERB: joining.prepare,
    departure.VERB: departure.prepare,
    departure.BACK: departure.prepare_back,
    removal.VERB: removal.prepare,
    create.VERB: create.prepare,
    restore.VERB: table_restore.prepare_restore,
    catalog.VERB: catalog.prepare,
    preparation.VERB: preparation.prepare,
}


def screen(cluster: str, path: str, known: Sequence[Run]) -> str:
    """Return a line per run, and the last line with what to do."""
    rows = [("RUN", "VERB", "BEGAN", "TOOK", "END", "")]
    rows += [
        (
            one.id,
            f"{one.verb} {one.target}",
            datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            age(one.lasted),
            one.state,
            ", ".join(one.facts),
        )
        for one in known[-_SHOWN:]
    ]
    left = [one for one in known if one.resumable]
    following = command(f"resume {left[-1].id}", path) if left else command("status", path)
    there = f"{counted(len(known), 'run')}, {len(left)} that can be resumed"
    return "\n".join([*aligned(rows), f"runs {cluster}: {there}; next: {following}"])


def document(cluster: str, known: Sequence[Run]) -> dict[str, Any]:
    """Return all runs for programs."""
    rows = [
        {
            "run": one.id,
            "verb": one.verb,
            "target": one.target,
            "began": one.at,
            "seconds": round(one.lasted, 1),
            "state": one.state,
            "exit": None if one.ended is None else int(one.ended),
            "facts": list(one.facts),
            "resumable": one.resumable,
        }
        for one in known
    ]
    return {"schema": SCHEMA, "verb": "runs", "target": cluster, "runs": rows}
