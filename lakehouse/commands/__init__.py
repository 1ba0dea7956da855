"""The arguments of every verb, a file per family of verbs.

A family's `register(add)` calls `add` for each of its verbs, with the name, what it does (a function of
`lakehouse.actions`, or `module:function`) and a line of help. What it gets is the verb's parser.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

Add = Callable[[str, str, str], argparse.ArgumentParser]
# Exit codes of a verb that could not do its work. One that looks has 1 for a cluster with a fault.
FAILED, NOT_KNOWN = 1, 2
_LAST_PORT = 65535
# Those of lakehouse.targets, without all that it loads.
MACHINES, COMPOSE = "nodes", "compose"


def change_options(*parsers: argparse._ActionsContainer) -> None:
    """Let verbs that change a cluster show their plan, take a yes or a name, and break a dead run's lock."""
    for one in parsers:
        one.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
        one.add_argument(
            "--yes", action="store_true", help="skip confirmation of a change that loses nothing"
        )
        one.add_argument(
            "--confirm", metavar="NAME", help="confirm any change by the name of what it changes"
        )
        one.add_argument(
            "--break-lock",
            metavar="RUN@MACHINE:MARK",
            help="break the lock of a run that is not heard of, named as in the message that reports it",
        )


def target_options(*parsers: argparse._ActionsContainer) -> None:
    """Let verbs ask machines, or a stack of docker compose."""
    for one in parsers:
        one.add_argument(
            "--target",
            choices=(MACHINES, COMPOSE),
            default=MACHINES,
            help="whom to ask (default: %(default)s)",
        )
        one.add_argument("--env-file", type=Path, help="settings of docker compose (default: compose/.env)")


def json_option(*parsers: argparse._ActionsContainer) -> None:
    """Let verbs answer as JSON."""
    for one in parsers:
        one.add_argument("--json", action="store_true", help="for programs")


def port(text: str) -> int:
    """Return a port, 0 for any; argparse's error for what is none."""
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is no port: 0 to {_LAST_PORT}")
    return int(text)
