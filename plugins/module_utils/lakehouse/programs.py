"""Programs that modules start: each has to end within a time, or it is killed with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible.module_utils.lakehouse.refused import RefusedError, UnansweredError


def run(
    argv: Sequence[str],
    *,
    seconds: float,
    next_command: str,
    text: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program with ``text`` for its input and return how it ended.

    Raises UnansweredError where there is no such program, and RefusedError after ``seconds``.
    """
    # A session of its own: runuser would be killed, and the Java below it would go on.
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd="/", env=environment, start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise UnansweredError(f"there is no program {argv[0]}", next_command) from error
    except OSError as error:
        raise RefusedError(f"{argv[0]}: {error.strerror}", next_command) from error
    try:
        output, errors = process.communicate(text, timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise RefusedError(f"{_named(argv)} has not ended within {seconds:g} s", next_command) from None
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def _named(argv: Sequence[str]) -> str:
    """The program that does the work: the one behind ``runuser -u NAME -g GROUP --``."""
    behind = argv[argv.index("--") + 1 :] if argv[0] == "runuser" and "--" in argv else argv
    return Path(behind[0]).name
