"""Verbs that make a lakehouse, prove it and measure it."""

from __future__ import annotations

from pathlib import Path

from lakehouse.commands import Add, target_options


def register(add: Add) -> None:
    """Add the verbs of local nodes, of the suites and of the benchmarks."""
    add("deploy", "deploy", "from a fresh machine to a verified lakehouse")
    tested = add("test", "test", "lint, unit, render, and a cluster of its own")
    tested.add_argument("--keep", action="store_true", help="leave the cluster running")
    add("nightly", "nightly", "both suites on docker compose")
    drilled = add("drills", "drills", "take a cluster of its own apart, longer than `test` may")
    drilled.add_argument(
        "drills",
        nargs="*",
        help="names of docs/drills.md, with _ for spaces; due: whose tests were changed (default: all)",
    )
    add("up", "up", "start the local nodes")
    add("down", "down", "remove the local nodes and their data")
    bundled = add("bundle", "bundle", "write all that an installation without a network needs into one file")
    bundled.add_argument(
        "--output", type=Path, help="where to (default: build/lakehouse-<profile>.bundle.tar)"
    )
    add("nodes", "show_nodes", "show the local nodes")
    add("take-over", "take_over", "make another checkout's local nodes this one's").add_argument(
        "cluster", help="the cluster's name"
    )
    suites = (
        add("smoke", "smoke", "run the smoke suite and write the report"),
        add("matrix", "matrix", "run every engine on every format and write the report"),
    )
    for suite in suites:
        suite.add_argument("selection", nargs="*", help="arguments for pytest")
    measured = add("bench", "bench", "measure the times of docs/benchmarks.md, into docs/numbers.yml")
    for removing in (tested, drilled, measured):
        removing.add_argument("--confirm", metavar="CLUSTER", help="name of the cluster that may be removed")
    risks = add(
        "risky-tables", "risky_tables", "list tables that another engine reads wrongly; 1 if there are any"
    )
    target_options(*suites, risks, measured)
