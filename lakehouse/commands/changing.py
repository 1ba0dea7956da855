"""Verbs that change a cluster, and what they have in common."""

from __future__ import annotations

import argparse

from lakehouse.commands import Add, change_options, json_option
from lakehouse.run import BILL


def register(add: Add) -> None:
    """Add the verbs that change a cluster."""
    restarted = add("restart", "ops.change.restart:main", "restart one unit after the other, behind a gate")
    restarted.add_argument("service", nargs="?", default="all", help="of services.yml (default: %(default)s)")
    restarted.add_argument("--host", metavar="HOST", help="on this host alone")
    restarted.add_argument(
        "--force", action="store_true", help="although blocks lack replicas; not if data would be lost"
    )
    away = add("maintenance", "ops.change.maintenance:main", "let a host go for a while, and bring it back")
    away.add_argument("node", help="a host of the inventory")
    way = away.add_mutually_exclusive_group(required=True)
    way.add_argument(
        "--for", dest="duration", metavar="TIME", help="stop what it runs, such as for 30m or 2h"
    )
    way.add_argument("--end", action="store_true", help="start it again")
    joined = add("scale-out", "ops.change.joining:main", "have a new host of the inventory join the cluster")
    joined.add_argument("node", help="a host that the inventory names since then")
    joined.add_argument(
        "--bandwidth",
        type=_positive,
        default=100,
        metavar="MIB",
        help="that a DataNode may move to it, in MiB/s (default: %(default)s)",
    )
    joined.add_argument(
        "--no-balance", dest="balance", action="store_false", help="leave blocks where they are"
    )
    left = add("decommission", "ops.change.departure:main", "have a host leave, with its blocks moved before")
    left.add_argument("node", help="a host of the inventory")
    left.add_argument(
        "--drain",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="that Spark's executors there may still work (default: %(default)g)",
    )
    left.add_argument("--offline", action="store_true", help="it does not answer, and will not again")
    left.add_argument(
        "--force", action="store_true", help="although blocks will lack replicas; not if data would be lost"
    )
    undone = add(
        "recommission", "ops.change.departure:back", "have a host serve again that left, or was about to"
    )
    undone.add_argument("node", help="a host of the inventory")
    removed = add("remove", "ops.change.removal:main", "take off what the inventory places nowhere any more")
    removed.add_argument("component", help="trino or flink")
    removed.add_argument("--data", action="store_true", help="with what it has on the disks of its hosts")
    raised = add(
        "upgrade", "ops.upgrade.verb:main", "switch to the releases of versions.yml, or back by itself"
    )
    raised.add_argument(
        "component",
        nargs="?",
        default="all",
        help="postgresql, or a version of versions.yml, such as iceberg (default: all of these)",
    )
    raised.add_argument(
        "--to", metavar="VERSION", help="refuse unless versions.yml has it; of postgresql: this one"
    )
    raised.add_argument(
        "--bill", default=BILL, metavar="FILE", help="below the kit's folder (default: %(default)s)"
    )
    raised.add_argument(
        "--finalize", action="store_true", help="of hadoop: keep what HDFS has; there is no way back then"
    )
    raised.add_argument("--force", action="store_true", help="although versions were never run together")
    raised.add_argument(
        "--ready",
        type=float,
        default=240.0,
        metavar="SECONDS",
        help="in which a unit has to answer, or its component goes back (default: %(default)g)",
    )
    for one in (restarted, away, left, raised):
        one.add_argument(
            "--wait", type=float, default=300.0, metavar="SECONDS", help="for a gate (default: %(default)g)"
        )
    resumed = add("resume", "ops.change.runs:resume", "go on with a run that was stopped")
    resumed.add_argument("run", nargs="?", help="such as r17 (default: the last one)")
    listed = add("runs", "ops.change.runs:main", "show what was changed from here, and how it ended")
    json_option(restarted, away, joined, left, undone, removed, raised, resumed, listed)
    change_options(restarted, away, joined, left, undone, removed, raised, resumed)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no whole number above 0")
    return int(text)
