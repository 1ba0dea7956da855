"""The command line: one verb per thing that a person wants."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

from lakehouse.errors import LakehouseError, UsageError

DEFAULT_INVENTORY = "inventory/local"
# Those of lakehouse.targets, without all that it loads.
MACHINES, COMPOSE = "nodes", "compose"
# Of `sql`.
ENGINES = "spark", "trino", "flink"
# What follows after -- is no option of ours, and no argument.
_COMMANDING = "exec"
# A verb that looks must not end with 1 or 2 for another reason than what it saw (sysexits.h: EX_USAGE).
USAGE = 64
FAILED, NOT_KNOWN = 1, 2
_LAST_PORT = 65535
# In seconds, between two looks at a cluster.
_LEAST_PAUSE, _MOST_PAUSE = 1, 3600
# As a shell says of a program that nobody reads any more.
PIPE = 141


class _Parser(argparse.ArgumentParser):
    """Ends with another code than argparse's 2, which a verb that looks has for a cluster that is down."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The arguments of every verb."""
    top = _Parser(prog="lakehouse", description="Three bare machines become a verified lakehouse.")
    top.set_defaults(failure=FAILED)
    verb = top.add_subparsers(required=True, metavar="verb")

    def add(name: str, action: str, text: str) -> argparse.ArgumentParser:
        one = verb.add_parser(name, help=text, description=text)
        one.set_defaults(action=action)
        one.add_argument(
            "-i", "--inventory", default=DEFAULT_INVENTORY, help="inventory (default: %(default)s)"
        )
        one.add_argument(
            "--started", type=float, help="when the calling program began, in seconds since the epoch"
        )
        return one

    add("deploy", "deploy", "from a fresh machine to a verified lakehouse")
    tested = add("test", "test", "lint, unit, render, and a cluster of its own")
    tested.add_argument("--keep", action="store_true", help="leave the cluster running")
    add("nightly", "nightly", "both suites on docker compose")
    drilled = add("drills", "drills", "take a cluster of its own apart, longer than `test` may")
    add("up", "up", "start the local nodes")
    add("down", "down", "remove the local nodes and their data")
    add("nodes", "show_nodes", "show the local nodes")
    looked = add("status", "ops.status.verb:main", "show what runs, what it holds and what is wrong")
    judged = add("doctor", "ops.doctor.verb:main", "say what is wrong, a line each, with the next command")
    for looking in (looked, judged):
        looking.set_defaults(failure=NOT_KNOWN)
        looking.add_argument("--json", action="store_true", help="for programs")
    looked.add_argument(
        "--watch",
        type=float,
        nargs="?",
        const=5.0,
        metavar="SECONDS",
        help="again and again (default: every 5)",
    )
    _add_console(add("console", "ops.console.verb:main", "the same as a page for a browser, until Ctrl-C"))
    _add_changes(add)
    _add_seeing(add)
    _add_backups(add)
    add("take-over", "take_over", "make another checkout's local nodes this one's").add_argument(
        "cluster", help="the cluster's name"
    )
    suites = (
        add("smoke", "smoke", "run the smoke suite and write the report"),
        add("matrix", "matrix", "run every engine on every format and write the report"),
    )
    for suite in suites:
        suite.add_argument("selection", nargs="*", help="arguments for pytest")
    measured = add("bench", "bench", "measure what the README promises, into build/bench/")
    for removing in (tested, drilled, measured):
        removing.add_argument("--confirm", metavar="CLUSTER", help="name of the cluster that may be removed")
    risks = add(
        "risky-tables", "risky_tables", "list tables that another engine reads wrongly; 1 if there are any"
    )
    for question in (*suites, risks, measured):
        question.add_argument(
            "--target",
            choices=(MACHINES, COMPOSE),
            default=MACHINES,
            help="whom to ask (default: %(default)s)",
        )
        question.add_argument(
            "--env-file", type=Path, help="settings of docker compose (default: compose/.env)"
        )
    _add_compose(verb.add_parser("compose", help="the stack of docker compose").add_subparsers(required=True))
    bill = verb.add_parser("artifacts", help="fetch or lock the files of versions.yml").add_subparsers(
        required=True
    )
    bill.add_parser("fetch", help="fill the cache").set_defaults(action="fetch")
    bill.add_parser("lock", help="resolve and record every file").set_defaults(action="lock")
    return top


def _add_console(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--address", default="127.0.0.1", help="where to listen (default: %(default)s)")
    verb.add_argument("--port", type=_port, default=8765, help="default: %(default)s; 0 for any")
    verb.add_argument(
        "--every", type=_pause, default=10.0, metavar="SECONDS", help="how often to look (default: every 10)"
    )


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is no port: 0 to {_LAST_PORT}")
    return int(text)


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


def _add_backups(add: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the verbs that make a backup, judge it, and bring a cluster back to it."""
    kept = add("backup", "ops.backup.verb:main", "make a backup, or judge one without restoring it")
    kept.add_argument("work", nargs="?", choices=("run", "verify", "list"), default="run")
    brought = add("restore", "ops.backup.verb:restore", "bring the cluster back to a backup")
    for one, which in ((kept, "to verify"), (brought, "to restore")):
        one.add_argument("backup", nargs="?", help=f"backup {which} (default: the newest)")
        one.add_argument("--json", action="store_true", help="for programs")
    brought.add_argument(
        "--to", metavar="TIME", help="catalog as of a time later than the backup, with its offset"
    )
    brought.add_argument(
        "--confirm", metavar="CLUSTER", help="name of the cluster whose state may be replaced"
    )


def _add_changes(add: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the verbs that change a cluster, and what they have in common."""
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
    for one in (restarted, away):
        one.add_argument(
            "--wait", type=float, default=300.0, metavar="SECONDS", help="for a gate (default: %(default)g)"
        )
    resumed = add("resume", "ops.change.runs:resume", "go on with a run that was stopped")
    resumed.add_argument("run", nargs="?", help="such as r17 (default: the last one)")
    listed = add("runs", "ops.change.runs:main", "show what was changed from here, and how it ended")
    for one in (restarted, away, resumed, listed):
        one.add_argument("--json", action="store_true", help="for programs")
    for one in (restarted, away, resumed):
        one.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
        one.add_argument("--yes", action="store_true", help="answer the question that nothing is lost by")
        one.add_argument("--confirm", metavar="CLUSTER", help="the cluster's name, where something is lost")
        one.add_argument("--break-lock", metavar="RUN", help="take the lock of this run, which is dead, away")


def _add_seeing(add: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """The verbs that read from hosts, or run something there that a person names."""
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
    for one, choice in ((told, told.add_mutually_exclusive_group()), (ran, ran), (packed, packed)):
        one.set_defaults(failure=NOT_KNOWN)
        choice.add_argument("--json", action="store_true", help="for programs")
        if one is told:
            choice.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    asked.set_defaults(failure=NOT_KNOWN)
    forms = asked.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="for programs")
    forms.add_argument("--csv", action="store_true", help="for a spreadsheet")


def _add_compose(verb: Any) -> None:
    for name, action, text in (
        ("up", "compose_up", "build, render and start the stack, and wait until every service answers"),
        ("image", "compose_image", "build the images"),
        ("names", "compose_names", "make the names of the containers lead to this computer, in /etc/hosts"),
        ("down", "compose_down", "remove the containers and keep the data"),
    ):
        one = verb.add_parser(name, help=text, description=text)
        one.set_defaults(action=action)
        one.add_argument("--env-file", type=Path, help="settings (default: compose/.env)")
        one.add_argument("--started", type=float, help="when the calling program began")
        if name == "names":
            one.add_argument("--forget", action="store_true", help="take them out again")
        if name == "down":
            one.add_argument("--volumes", action="store_true", help="remove the data too")


def action(name: str) -> Callable[[argparse.Namespace], int]:
    """Load what a verb does: a function of lakehouse.actions, or `module:function`."""
    found: Callable[[argparse.Namespace], int] = resolve_name(
        name if ":" in name else f"lakehouse.actions:{name}"
    )
    return found


def parsed(words: list[str]) -> argparse.Namespace:
    """Return the arguments; of `exec`, what follows after -- is `command`, whatever it looks like."""
    cut = words.index("--") if words[:1] == [_COMMANDING] and "--" in words else len(words)
    arguments = parser().parse_args(words[:cut])
    arguments.command = words[cut + 1 :]
    return arguments


def main(argv: list[str] | None = None) -> int:
    """Run the verb; a LakehouseError is one line, never a traceback."""
    arguments = parsed(sys.argv[1:] if argv is None else argv)
    try:
        return int(action(arguments.action)(arguments))
    except LakehouseError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 -- the one place that speaks to a person
        return USAGE if isinstance(error, UsageError) else int(arguments.failure)
    except BrokenPipeError:
        # Who reads has enough; what is left to print goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"error: {said}; next: df -h, ls -ld {error.filename or '.'}", file=sys.stderr)  # noqa: T201 -- as above
        return int(arguments.failure)
    except KeyboardInterrupt:
        print("interrupted; next: run the same command again", file=sys.stderr)  # noqa: T201 -- as above
        return 130


if __name__ == "__main__":
    sys.exit(main())
