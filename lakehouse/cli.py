"""The command line: one verb per thing that a person wants."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, NoReturn

from lakehouse.commands import FAILED, building, changing, containers, history, keeping, looking
from lakehouse.errors import LakehouseError, UsageError, system_said
from lakehouse.interruption import raised
from lakehouse.run import BILL
from lakehouse.terminal import LINES, printable

DEFAULT_INVENTORY = "inventory/local"
# In this order they are shown.
FAMILIES = building, looking, changing, keeping, history
# What follows after -- is no option of ours, and no argument.
_COMMANDING = "exec"
# A verb that looks must not end with 1 or 2 for another reason than what it saw (sysexits.h: EX_USAGE).
USAGE = 64
# As a shell says of a program that has lost its reader.
PIPE = 141


class _Parser(argparse.ArgumentParser):
    """Takes options between the arguments of a verb, too, where argparse by itself would lose the second one.

    Ends with another code than argparse's 2, which a verb that looks has for a cluster that is down.
    """

    # As argparse does it: where verbs follow, after --, and in each of the two steps of the other way.
    _plain = False

    def add_subparsers(self, **options: Any) -> Any:
        self._plain = True
        return super().add_subparsers(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # The other way takes the defaults of arguments away, of which a help text speaks.
        if self._plain or {"--", "-h", "--help"} & {*(args or ())}:
            return super().parse_known_args(args, namespace)
        self._plain = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._plain = False

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The arguments of every verb."""
    top = _Parser(prog="lakehouse", description="Three bare machines become a verified lakehouse.")
    top.set_defaults(failure=FAILED)
    verb = top.add_subparsers(required=True, metavar="verb")

    def add(name: str, action: str, text: str) -> argparse.ArgumentParser:
        one: argparse.ArgumentParser = verb.add_parser(name, help=text, description=text)
        one.set_defaults(action=action)
        one.add_argument(
            "-i", "--inventory", default=DEFAULT_INVENTORY, help="inventory (default: %(default)s)"
        )
        one.add_argument(
            "--started", type=float, help="when the calling program began, in seconds since the epoch"
        )
        return one

    for family in FAMILIES:
        family.register(add)
    stack = verb.add_parser("compose", help="the stack of docker compose")
    containers.register(stack.add_subparsers(required=True))
    bill = verb.add_parser("artifacts", help="fetch or lock the files of versions.yml").add_subparsers(
        required=True
    )
    bill.add_parser("fetch", help="fill the cache").set_defaults(action="fetch")
    locked = bill.add_parser("lock", help="resolve and record every file")
    locked.add_argument(
        "--bill", default=BILL, metavar="FILE", help="below the kit's folder (default: %(default)s)"
    )
    locked.set_defaults(action="lock")
    return top


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
        with raised(KeyboardInterrupt, [signal.SIGINT]):
            return int(action(arguments.action)(arguments))
    except LakehouseError as error:
        print(f"error: {printable(str(error), keep=LINES)}", file=sys.stderr)  # noqa: T201 -- the one place that speaks to a person
        return USAGE if isinstance(error, UsageError) else int(arguments.failure)
    except BrokenPipeError:
        # Who reads has enough; what is left to print goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except OSError as error:
        following = f"df -h, ls -ld {error.filename or '.'}"
        print(f"error: {system_said(error)}; next: {following}", file=sys.stderr)  # noqa: T201 -- as above
        return int(arguments.failure)
    except KeyboardInterrupt:
        print("interrupted; next: run the same command again", file=sys.stderr)  # noqa: T201 -- as above
        return 130


if __name__ == "__main__":
    sys.exit(main())
