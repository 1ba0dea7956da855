"""Verbs of the catalog's history."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from lakehouse.commands import FAILED, NOT_KNOWN, Add, change_options, json_option, port, target_options

_VERB, _MERGING = "ops.catalog.verb:", "ops.catalog.merging:"
# Where it is not the function of the verb's name: Python has a word like it, or a file is its own.
_FUNCTIONS = {
    "diff": f"{_VERB}compare",
    "serve": "ops.catalog.serving:main",
    "restore": "ops.catalog.restoring:main",
    "check": "ops.catalog.checking:main",
    "picture": "ops.catalog.drawing:main",
    "merge": f"{_MERGING}merge",
    "cherry-pick": f"{_MERGING}cherry_pick",
    "revert": f"{_MERGING}revert",
}


def register(add: Add) -> None:
    """Add the verb `catalog` with its own verbs."""
    top = add(
        "catalog", f"{_VERB}log", "the history of the metastore: commits, and what changed between them"
    )
    verbs = top.add_subparsers(required=True, metavar="work")

    def one(name: str, text: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=text, description=text)
        made.set_defaults(action=_FUNCTIONS.get(name, f"{_VERB}{name}"), failure=NOT_KNOWN)
        made.add_argument("-i", "--inventory", default=argparse.SUPPRESS, help="inventory")
        target_options(made)
        made.add_argument(
            "--store", type=Path, metavar="PATH", help="repository (default: .state/<cluster>/catalog.git)"
        )
        return made

    _commit(one)
    _looks(one)
    _names(one)
    _served(one)
    _restored(one)
    _desired(one)


def _commit(one: Callable[[str, str], argparse.ArgumentParser]) -> None:
    made = one("commit", "keep the catalog as it is now")
    _signed(made, "what changed")
    made.add_argument(
        "--pin", type=int, nargs="?", const=30, metavar="DAYS",
        help="tag the snapshots of Iceberg tables, so that no expiry takes them away (default: 30)",
    )  # fmt: skip
    made.add_argument("--full", action="store_true", help="read everything, not only what has changed")
    json_option(made)


def _signed(made: argparse.ArgumentParser, told: str) -> None:
    made.add_argument("-m", "--message", metavar="TEXT", help=f"why (default: {told})")
    made.add_argument(
        "--author", metavar="NAME", help="as in 'Ann <ann@example.org>' (default: who you are here)"
    )


def _looks(one: Callable[[str, str], argparse.ArgumentParser]) -> None:
    listed = one("log", "list commits, the newest first")
    listed.add_argument(
        "name", nargs="?", help="of this object: db, db.table, db.table/partition, db.function()"
    )
    listed.add_argument("-n", "--count", type=int, default=20, help="so many (default: %(default)s)")
    listed.add_argument(
        "--branch", default="HEAD", metavar="BRANCH", help="of this one, or up to a commit (default: main)"
    )
    shown = one("show", "show what a commit changed, or an object as it was then")
    shown.add_argument(
        "commit", nargs="?", default="HEAD", help="id, tag, branch, or HEAD~2 (default: %(default)s)"
    )
    shown.add_argument("name", nargs="?", help="db, db.table, db.table/partition or db.function()")
    compared = one("diff", "show what changed from a commit to another one, or to now")
    compared.add_argument("old", nargs="?", metavar="A", help="default: the last commit")
    compared.add_argument("new", nargs="?", metavar="B", help="default: the metastore as it is now")
    compared.add_argument(
        "--expect", metavar="COMMIT", help="end with 1 if the metastore is not as in this one"
    )
    compared.add_argument(
        "--ignore", metavar="PATTERN", action="append", default=[], help="parameters not to compare"
    )
    compared.add_argument(
        "--no-data", action="store_true", help="new rows in Iceberg and Delta tables are no change"
    )
    compared.add_argument("--statistics", action="store_true", help="compare statistics, too")
    blamed = one("blame", "show which commit gave an object each of its values")
    blamed.add_argument("name", help="db, db.table or db.table/partition")
    blamed.add_argument("commit", nargs="?", default="HEAD", help="as of then (default: %(default)s)")
    drawn = one("picture", "write a page for a browser: who changed which table when")
    drawn.add_argument("name", nargs="?", help="of this database or table alone")
    drawn.add_argument("-n", "--count", type=int, default=40, help="so many commits (default: %(default)s)")
    drawn.add_argument(
        "--out", type=Path, default=Path("build/report/history.html"), help="default: %(default)s"
    )
    readable = one("check", "name the tables of a commit that can no longer be read as they were")
    readable.add_argument("commit", nargs="?", default="HEAD", help="id, tag, branch (default: %(default)s)")
    readable.add_argument("name", nargs="?", help="db or db.table (default: all)")
    checked = one("fsck", "read every object of the history, and name those that are damaged")
    forms = compared.add_mutually_exclusive_group()
    forms.add_argument("--sql", action="store_true", help="as statements for Spark, where there are such")
    json_option(listed, shown, forms, blamed, drawn, readable, checked)


def _names(one: Callable[[str, str], argparse.ArgumentParser]) -> None:
    for verb, text in (("tag", "name a commit"), ("branch", "name a commit from which others may go on")):
        named = one(verb, text)
        named.add_argument("name", nargs="?", help="default: list them")
        named.add_argument("commit", nargs="?", default="HEAD", help="default: %(default)s")
        named.add_argument("--delete", metavar="NAME", help="take a name away; the commit stays")
        json_option(named)


def _restored(one: Callable[[str, str], argparse.ArgumentParser]) -> None:
    back = one("restore", "have the metastore be what it was in a commit; files stay as they are")
    back.set_defaults(failure=FAILED)
    back.add_argument("commit", help="id, tag, branch, or HEAD~2")
    back.add_argument("name", nargs="?", help="db, db.table, db.table/partition or db.f() (default: all)")
    back.add_argument(
        "--drop", action="store_true", help="take what the commit does not have out of the catalog"
    )
    back.add_argument(
        "--as", dest="other", metavar="NAME", help="a database as another one, on the same files: a clone"
    )
    back.add_argument(
        "--rewrite", metavar="FROM=TO", action="append", default=[],
        help="have what is below FROM be below TO: files that were copied to another cluster",
    )  # fmt: skip
    json_option(back)
    change_options(back)


def _served(one: Callable[[str, str], argparse.ArgumentParser]) -> None:
    served = one("serve", "be a metastore as of a commit, read-only, until Ctrl-C")
    served.add_argument(
        "commit", nargs="?", default="HEAD", help="id, tag, branch, or HEAD~2 (default: %(default)s)"
    )
    served.add_argument(
        "--address",
        "--host",
        dest="address",
        default="127.0.0.1",
        help="where to listen (default: %(default)s)",
    )
    served.add_argument("--port", type=port, default=9084, help="default: %(default)s; 0 for any")
    json_option(served)


def _desired(one: Callable[[str, str], argparse.ArgumentParser]) -> None:
    for verb, text, what in (
        ("merge", "have what another branch has changed, too", "a branch, a tag, or an id"),
        ("cherry-pick", "change what another commit has changed", "id, tag, branch, or HEAD~2"),
        ("revert", "change back what a commit has changed", "id, tag, branch, or HEAD~2"),
    ):
        verb_parser = one(verb, f"{text}: as a commit of a branch, which restore writes into the metastore")
        verb_parser.add_argument("commit", help=what)
        verb_parser.add_argument(
            "--into", metavar="BRANCH", help="it goes on with this one (default: a new one, from main)"
        )
        _signed(verb_parser, "what was asked for")
        sides = verb_parser.add_mutually_exclusive_group()
        for side, whose in (("ours", "the branch's own"), ("theirs", "the other")):
            sides.add_argument(
                f"--{side}", dest="side", action="store_const", const=side,
                help=f"where both have changed a value, {whose} side decides",
            )  # fmt: skip
        verb_parser.add_argument(
            "--no-data", action="store_true", help="new rows in Iceberg and Delta tables are no change"
        )
        json_option(verb_parser)
