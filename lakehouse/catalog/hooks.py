"""The user's hooks before and after a commit and a restore: programs in the repository's folder `hooks`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError

# Not the names of git's own hooks, which get other input.
PRE_COMMIT, POST_COMMIT = "catalog-pre-commit", "catalog-post-commit"
PRE_RESTORE, POST_RESTORE = "catalog-pre-restore", "catalog-post-restore"
_SECONDS = 60.0
_SAID = 300


def run(store: Path, hook: str, details: Callable[[], Mapping[str, Any]]) -> None:
    """Run a hook, if there is one, with the details as JSON on its standard input.

    Raises LakehouseError with its last line for an exit code other than 0, or after a timeout of a minute.
    """
    program = store / "hooks" / hook
    if not os.access(program, os.X_OK) or not program.is_file():
        return
    try:
        process = subprocess.run(
            [program.resolve()], input=json.dumps(details()), capture_output=True, text=True, check=False,
            timeout=_SECONDS, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LakehouseError(f"the hook {hook} has not ended after {_SECONDS:.0f} s", str(program)) from None
    except OSError as error:
        raise LakehouseError(f"the hook {hook} cannot be run: {error.strerror}", f"less {program}") from None
    if process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines() or [
            f"it ended with {process.returncode}"
        ]
        raise LakehouseError(f"the hook {hook} refuses: {lines[-1][:_SAID]}", f"less {program}")
