"""Run scripts with psql on this host, and read what it prints."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from lakehouse.errors import LakehouseError

# The prefix of psql's error messages, which no row has.
_COMPLAINT = b"psql:"

# Runs a script with psql in a database, and gives its output.
Ask = Callable[[str], AbstractContextManager[Iterator[bytes]]]


def rows(stream: Iterable[bytes], complaints: list[str]) -> Iterator[bytes]:
    """Give the rows that psql prints; append its error messages to `complaints`."""
    for line in stream:
        if line.startswith(_COMPLAINT):
            complaints.append(" ".join(line.decode(errors="replace").split()))
        else:
            yield line


def database(psql: list[str], environment: Mapping[str, str] | None = None) -> Ask:
    """Return a function that runs scripts with psql on this host, as the current user."""

    @contextmanager
    def ask(script: str) -> Iterator[Iterator[bytes]]:
        with tempfile.TemporaryFile() as script_file:
            script_file.write(script.encode())
            script_file.seek(0)
            with subprocess.Popen(
                [*psql, "-f", "-"],
                stdin=script_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            ) as process:
                complaints: list[str] = []
                try:
                    yield rows(process.stdout or (), complaints)
                except LakehouseError as error:
                    why = next(iter(complaints), "")
                    if not why:
                        raise
                    raise LakehouseError(f"{why}: {error.message}", error.next_command) from error
                finally:
                    process.kill()

    return ask
