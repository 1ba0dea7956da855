"""Verbs that make a backup, judge it, and bring a cluster back to it."""

from __future__ import annotations

from lakehouse.commands import Add, change_options, json_option


def register(add: Add) -> None:
    """Add the verbs of backups."""
    kept = add("backup", "ops.backup.verb:main", "make a backup, or judge one without restoring it")
    kept.add_argument("work", nargs="?", choices=("run", "verify", "list"), default="run")
    brought = add("restore", "ops.backup.verb:restore", "bring a cluster, a database or a table back")
    for one, which in ((kept, "to verify"), (brought, "to restore")):
        one.add_argument("backup", nargs="?", help=f"backup {which} (default: the newest)")
    json_option(kept, brought)
    change_options(kept, brought)
    what = brought.add_mutually_exclusive_group()
    what.add_argument("--table", metavar="DATABASE.NAME", help="this table alone, into the cluster that runs")
    what.add_argument("--database", metavar="DATABASE", help="the tables of this database alone")
    what.add_argument(
        "--to", metavar="TIME", help="catalog as of a time later than the backup, with its offset"
    )
    brought.add_argument(
        "--as", dest="other", metavar="NAME", help="of a table: under this name, beside the one that is there"
    )
