"""Commands: a file each, with its options beside its function; a folder is a group of commands.

The docstring of the function is the help of the command. A group imports a file when its command runs, since
many load Ansible, pyarrow or docker.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import click
from click.core import ParameterSource

from lakehouse.errors import LakehouseError, UsageError, system_said
from lakehouse.log import PRINTED
from lakehouse.terminal import LINES, printable

_LOG = logging.getLogger(__name__)
# Exit codes of a command that could not do its work. One that reports on a cluster has 1 for a fault of that.
FAILED, NOT_KNOWN = 1, 2
# Names what does not exist (sysexits.h: EX_USAGE).
USAGE = 64


class Command(click.Command):
    """A command whose errors are a line each; `failure` is the exit code of all but usage errors.

    `exclusive` has names of options of which a command line takes one.
    """

    def __init__(
        self, *arguments: Any, failure: int = FAILED, exclusive: Sequence[Sequence[str]] = (), **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.failure = failure
        self.exclusive = exclusive

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; click.UsageError where two options exclude each other."""
        remaining = super().parse_args(ctx, args)
        for names in self.exclusive:
            options = [
                param.opts[0]
                for param in self.params
                if param.name in names and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
            ]
            if options[1:]:
                raise click.UsageError(f"{' and '.join(options)} exclude each other", ctx)
        return remaining

    def invoke(self, ctx: click.Context) -> int:
        """Run the command and return its exit code."""
        _LOG.info("%s (%s)", ctx.command_path, ctx.params.get("inventory", "no inventory"))
        try:
            return super().invoke(ctx) or 0
        except LakehouseError as error:
            show(str(error))
            return USAGE if isinstance(error, UsageError) else self.failure
        except BrokenPipeError:
            raise  # a reader that has enough is no failure: see lakehouse.cli
        except OSError as error:
            show(f"{system_said(error)}; next: df -h, ls -ld {error.filename or '.'}")
            return self.failure


def command(
    *, failure: int = FAILED, exclusive: Sequence[Sequence[str]] = (), cls: type[Command] = Command
) -> Callable[[Callable[..., int | None]], Command]:
    """Make a command of a function that returns an exit code, by default 0; see `Command`."""
    return click.command(cls=cls, failure=failure, exclusive=exclusive)


class Folder(click.Group):
    """The commands of a package: each file has one, its `command`. Names have hyphens for underscores."""

    def __init__(self, package: str, path: Iterable[str], **settings: Any) -> None:
        super().__init__(**settings)
        self.package = package
        self.path = path

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options of the group, which are defaults of its commands: `catalog -i PATH log`."""
        remaining = super().parse_args(ctx, args)
        ctx.default_map = dict.fromkeys(self.list_commands(ctx), ctx.params)
        return remaining

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the names, sorted."""
        return [module.name.replace("_", "-") for module in iter_modules(self.path)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command; click.NoSuchCommand names similar ones."""
        names = self.list_commands(ctx)
        if cmd_name not in names:
            raise click.NoSuchCommand(cmd_name, possibilities=names, ctx=ctx)
        module = import_module(f"{self.package}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first line of each help, which is read without importing the file."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(name)) for name in self.list_commands(ctx)])

    def _summary(self, name: str) -> str:
        [folder] = self.path
        place = Path(folder) / name.replace("-", "_")
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        module = ast.parse(file.read_text(encoding="utf-8"))
        functions = (node for node in module.body if isinstance(node, ast.FunctionDef))
        function = next((node for node in functions if node.name == "command"), module)
        return str(ast.get_docstring(function)).partition("\n")[0]


def show(error: str) -> None:
    """Print an error as a line on stderr."""
    logging.getLogger(PRINTED).error("%s", error)
    sys.stderr.write(f"error: {printable(error, keep=LINES)}\n")
