"""The programs of the timeline: `collect` is the timer's, `show` answers a request, a line of JSON.

Both print an object of JSON; `why` and `next` in it are an error. Exit code: 1 after an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from lakehouse.catalog.psql import database
from lakehouse.errors import LakehouseError, UsageError
from lakehouse.timeline import question, webhooks
from lakehouse.timeline.collect import Look
from lakehouse.timeline.settings import Settings, load
from lakehouse.timeline.store import Store
from lakehouse.timeline.tree import HdfsTree
from plugins.module_utils.lakehouse import exported_metrics

_METRICS = {
    "tables": "Tables of the timeline.",
    "commits": "Commits on the timeline.",
    "abandoned": "Commits that have begun, and whose writer is silent.",
    "faults": "Tables whose commits cannot be read as a whole.",
    "lags": "Tables whose newest commits the metastore does not have.",
    "subscribers_failed": "Subscribers that do not receive commits.",
}


def main(argv: list[str] | None = None) -> int:
    """Run a program; return its exit code."""
    parser = argparse.ArgumentParser(prog="lakehouse-timeline", description=__doc__)
    parser.add_argument("--settings", required=True)
    parser.add_argument("program", choices=["collect", "show"])
    arguments = parser.parse_args(argv)
    try:
        settings = load(arguments.settings)
        store = Store(database(settings.psql))
        if arguments.program == "collect":
            document = _collect(settings, store)
        else:
            document = question.answer(store, json.loads(sys.stdin.readline()))
    except LakehouseError as error:
        document = _refusal(error.message, error.next_command, is_usage=isinstance(error, UsageError))
    except OSError as error:
        document = _refusal(str(error))
    sys.stdout.write(f"{json.dumps(document)}\n")
    return int("why" in document)


def _refusal(why: str, following: str | None = None, *, is_usage: bool = False) -> dict[str, Any]:
    return {"why": " ".join(why.split()), "next": following, "usage": is_usage}


def _collect(settings: Settings, store: Store) -> dict[str, Any]:
    store.create()
    tree = HdfsTree(settings.namenode, settings.superuser)
    commits = Look(database(settings.metastore_psql), store, tree, int(time.time() * 1000)).run()
    if commits:
        store.forget(settings.keep_days)
    store.subscribe(settings.subscribers)
    webhooks.deliver(store, settings.cluster)
    _export(settings, store.counts())
    return {"commits": commits}


def _export(settings: Settings, counts: Mapping[str, int]) -> None:
    gauges: dict[str, tuple[str, float]] = {
        f"lakehouse_timeline_{name}": (description, counts[name]) for name, description in _METRICS.items()
    }
    gauges["lakehouse_timeline_good_timestamp_seconds"] = "When all tables were looked at last.", time.time()
    limit = "The age from which the last look is old."
    gauges["lakehouse_timeline_limit_seconds"] = limit, settings.alert_seconds
    exported_metrics.export(settings.metrics, gauges)


if __name__ == "__main__":
    sys.exit(main())
