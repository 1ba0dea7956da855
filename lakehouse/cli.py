"""The command line: `lakehouse` with its commands."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from pathlib import Path

import click

from lakehouse import commands, log
from lakehouse.interruption import raised
from lakehouse.next_command import PROGRAM

# As a shell reports a program that has lost its reader.
PIPE = 141
INTERRUPTED = 130

# `python -m` calls this module __main__.
_LOG = logging.getLogger("lakehouse.cli")


def _configure(verbose: bool, log_file: Path | None) -> None:
    try:
        log.configure(verbose=verbose, file=log_file)
    except OSError as error:
        raise click.UsageError(f"--log-file {log_file}: {error.strerror}") from error


ROOT = commands.Folder(
    commands.__name__,
    commands.__path__,
    help="Three bare machines become a verified lakehouse.",
    params=[
        click.Option(["-v", "--verbose"], is_flag=True, help="log programs and hosts on stderr"),
        click.Option(["--log-file"], type=click.Path(path_type=Path), help="append the log to this file"),
    ],
    callback=_configure,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
)


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code; an error is one line, never a traceback."""
    words, began = sys.argv[1:] if argv is None else argv, time.monotonic()
    code = _main(words)
    _LOG.info("exit code %s after %.1f s", code, time.monotonic() - began)
    return code


def _main(words: list[str]) -> int:
    try:
        with raised(KeyboardInterrupt, [signal.SIGINT]), ROOT.make_context("lakehouse", [*words]) as context:
            return int(ROOT.invoke(context))
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return commands.USAGE
    except click.ClickException as error:
        commands.show(f"{error.format_message().rstrip('.')}; next: {_help(error)}")
        return commands.USAGE
    except BrokenPipeError:
        # The reader has enough; what is left to print goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; next: run the same command again\n")
        return INTERRUPTED


def _help(error: click.ClickException) -> str:
    """Return the command that prints the help of the command that an error is about."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{Path(PROGRAM).parent}/{context.command_path if context else 'lakehouse'} --help"


if __name__ == "__main__":
    sys.exit(main())
