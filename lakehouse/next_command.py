"""The command to run next, as it works when it is pasted in the kit's folder."""

from __future__ import annotations

import shlex

PROGRAM = ".venv/bin/lakehouse"


def command(words: str, inventory: object) -> str:
    """Return the command line of a verb for an inventory, whose path is quoted where a shell needs that."""
    return f"{PROGRAM} {words} -i {shlex.quote(str(inventory))}"
