"""Programs of the user's before and after a commit and a restore, in the repository's folder `hooks`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError

# Not git's own names: what it hands to a hook is something else.
PRE_COMMIT, POST_COMMIT = "catalog-pre-commit", "catalog-post-commit"
PRE_RESTORE, POST_RESTORE = "catalog-pre-restore", "catalog-post-restore"
_SECONDS = 60.0
_SAID = 300


def run(store: Path, hook: str, told: Callable[[], Mapping[str, Any]]) -> None:
    """Run a hook, if there is one, with what is `told` as JSON on its standard input.

    Raises LakehouseError with its last line where it ends otherwise than with 0, or not within a minute.
    """
    program = store / "hooks" / hook
    if not os.access(program, os.X_OK) or not program.is_file():
        return
    try:
        done = subprocess.run(
            [program.resolve()], input=json.dumps(told()), capture_output=True, text=True, check=False,
            timeout=_SECONDS, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LakehouseError(f"the hook {hook} has not ended after {_SECONDS:.0f} s", str(program)) from None
    except OSError as error:
        raise LakehouseError(f"the hook {hook} cannot be run: {error.strerror}", f"less {program}") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"it ended with {done.returncode}"]
        raise LakehouseError(f"the hook {hook} refuses: {lines[-1][:_SAID]}", f"less {program}")
