"""Verbs that look at a cluster, or run on its hosts what a person names."""

from __future__ import annotations

import argparse
from pathlib import Path

from lakehouse.commands import NOT_KNOWN, Add, json_option, port

# Of `sql`.
ENGINES = "spark", "trino", "flink"
# In seconds, between two looks at a cluster.
_LEAST_PAUSE, _MOST_PAUSE = 1, 3600


def register(add: Add) -> None:
    """Add the verbs that look."""
    looked = add("status", "ops.status.verb:main", "show what runs, what it holds and what is wrong")
    judged = add("doctor", "ops.doctor.verb:main", "say what is wrong, a line each, with the next command")
    json_option(looked, judged)
    for looking in (looked, judged):
        looking.set_defaults(failure=NOT_KNOWN)
    looked.add_argument(
        "--watch",
        type=float,
        nargs="?",
        const=5.0,
        metavar="SECONDS",
        help="again and again (default: every 5)",
    )
    shown = add("console", "ops.console.verb:main", "the same as a page for a browser, until Ctrl-C")
    shown.add_argument("--address", default="127.0.0.1", help="where to listen (default: %(default)s)")
    shown.add_argument("--port", type=port, default=8765, help="default: %(default)s; 0 for any")
    shown.add_argument(
        "--every", type=_pause, default=10.0, metavar="SECONDS", help="how often to look (default: every 10)"
    )
    _metastore(add)
    _remote(add)


def _metastore(add: Add) -> None:
    top = add("metastore", "ops.metastore:main", "look at the metastore alone")
    verbs = top.add_subparsers(required=True, metavar="work")
    text = "ask each address of the metastore, its database and HDFS, and say what does not answer"
    checked = verbs.add_parser("check", help=text, description=text)
    checked.add_argument("-i", "--inventory", default=argparse.SUPPRESS, help="inventory")
    checked.set_defaults(failure=NOT_KNOWN)
    json_option(checked)


def _remote(add: Add) -> None:
    told = add("logs", "ops.logs:main", "show what a service says, on every host of it")
    told.add_argument("service", help="a key of services.yml, such as namenode")
    told.add_argument("--host", help="on this host alone")
    told.add_argument("--since", help="from then on: 10m, 2h, 1d, or 2026-01-31T10:00 (UTC)")
    told.add_argument(
        "--lines", type=int, default=200, help="the last of each host and file (default: %(default)s)"
    )
    ran = add("exec", "ops.execute:main", "run a command on hosts, as root, and show what each says")
    ran.add_argument("service", nargs="?", help="on the hosts of this service (default: on all)")
    where = ran.add_mutually_exclusive_group()
    where.add_argument("--host", help="on this host")
    where.add_argument("--group", help="on the hosts of this group of the inventory")
    ran.epilog = "What to run follows after --: one word is a line for the shell, several are a program's."
    asked = add("sql", "ops.sql.verb:main", "run SQL on an engine; a session where no statement is given")
    asked.add_argument("statement", nargs="?", help="one, or several with a semicolon between them")
    asked.add_argument("--engine", choices=ENGINES, required=True, help="whom to ask")
    asked.add_argument("-f", "--file", type=Path, help="a file of statements; - is stdin")
    asked.add_argument("--as", dest="person", metavar="USER", help="as whom (default: the engine's own user)")
    packed = add("support-bundle", "ops.bundle.verb:main", "pack what helpers need to know, without secrets")
    packed.add_argument(
        "--size", type=float, default=32.0, metavar="MIB", help="the most of it (default: %(default)s MiB)"
    )
    for one, seconds in ((ran, 60.0), (asked, 600.0), (packed, 120.0)):
        one.add_argument(
            "--limit", type=float, default=seconds, metavar="SECONDS", help="of time (default: %(default)s)"
        )
    for one in (told, ran, asked, packed):
        one.set_defaults(failure=NOT_KNOWN)
    endless, forms = told.add_mutually_exclusive_group(), asked.add_mutually_exclusive_group()
    json_option(endless, ran, forms, packed)
    endless.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    forms.add_argument("--csv", action="store_true", help="for a spreadsheet")


def _pause(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _LEAST_PAUSE <= seconds <= _MOST_PAUSE:
        raise argparse.ArgumentTypeError(
            f"{text} is no number of seconds from {_LEAST_PAUSE} to {_MOST_PAUSE}"
        )
    return seconds
