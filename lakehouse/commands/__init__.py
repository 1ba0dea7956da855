"""The arguments of every verb, a file per family of verbs.

A family's `register(add)` calls `add` for each of its verbs, with the name, what it does (a function of
`lakehouse.actions`, or `module:function`) and a line of help. What it gets is the verb's parser.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

Add = Callable[[str, str, str], argparse.ArgumentParser]
# Exit codes of a verb that could not do its work. One that looks has 1 for a cluster with a fault.
FAILED, NOT_KNOWN = 1, 2


def json_option(*parsers: argparse._ActionsContainer) -> None:
    """Let verbs answer as JSON."""
    for one in parsers:
        one.add_argument("--json", action="store_true", help="for programs")
