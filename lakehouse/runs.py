"""`lakehouse runs` and `lakehouse resume`: the runs of this machine, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lakehouse.backup import create, restore, table_restore
from lakehouse.cluster_catalog import restoring as catalog
from lakehouse.next_command import command
from lakehouse.outcome import SCHEMA
from lakehouse.rolling import departure, joining, maintenance, removal, restart
from lakehouse.rolling.journal import Run
from lakehouse.rolling.run import Prepare
from lakehouse.status.screen import age, aligned
from lakehouse.upgrade import preparation
from plugins.module_utils.lakehouse.counting import counted

# How many runs are printed; --json has all.
_SHOWN = 20
# The functions that prepare a resumed run: finished steps are skipped.
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


def screen(cluster: str, path: str, runs: Sequence[Run]) -> str:
    """Return a line per run, and a last line with the next command."""
    rows = [("RUN", "VERB", "BEGAN", "TOOK", "END", "")]
    rows += [
        (
            run.id,
            f"{run.verb} {run.target}",
            datetime.fromtimestamp(run.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            age(run.lasted),
            run.state,
            ", ".join(run.facts),
        )
        for run in runs[-_SHOWN:]
    ]
    resumable = [run for run in runs if run.resumable]
    next_command = command(f"resume {resumable[-1].id}", path) if resumable else command("status", path)
    summary = f"{counted(len(runs), 'run')}, {len(resumable)} that can be resumed"
    return "\n".join([*aligned(rows), f"runs {cluster}: {summary}; next: {next_command}"])


def document(cluster: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Return all runs for programs."""
    rows = [
        {
            "run": run.id,
            "verb": run.verb,
            "target": run.target,
            "began": run.at,
            "seconds": round(run.lasted, 1),
            "state": run.state,
            "exit": None if run.ended is None else int(run.ended),
            "facts": list(run.facts),
            "resumable": run.resumable,
        }
        for run in runs
    ]
    return {"schema": SCHEMA, "verb": "runs", "target": cluster, "runs": rows}
