"""Verbs that make a backup, judge it, and bring a cluster back to it."""

from __future__ import annotations

from lakehouse.commands import Add, change_options, json_option


def register(add: Add) -> None:
    """Add the verbs of backups."""
    kept = add("backup", "ops.backup.verb:main", "make a backup, or judge one without restoring it")
    kept.add_argument("work", nargs="?", choices=("run", "verify", "list"), default="run")
    brought = add("restore", "ops.backup.verb:restore", "bring the cluster back to a backup")
    for one, which in ((kept, "to verify"), (brought, "to restore")):
        one.add_argument("backup", nargs="?", help=f"backup {which} (default: the newest)")
    json_option(kept, brought)
    change_options(kept, brought)
    brought.add_argument(
        "--to", metavar="TIME", help="catalog as of a time later than the backup, with its offset"
    )
