"""How an engine is asked for an operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suites.testbed.engines.facade import Row

# SQL with places for the names in `Names`, or a function of the clients' handle and those names.
Step = str | Callable[..., "list[Row] | None"]


@dataclass(frozen=True)
class Names:
    """What a step may name: the table, another one that it may make, and a version of the past.

    `table`, `copy` and `view` are names as the engine's SQL wants them, the `short` ones lack the `catalog`.
    `version`, `committed` (UTC, as text) and `committed_ms` (milliseconds since the epoch) are those of the
    first commit; empty where the format knows none.
    """

    table: str
    short: str
    database: str
    name: str
    uri: str
    copy: str
    copy_short: str
    copy_uri: str
    view: str
    catalog: str = ""
    version: str = ""
    committed: str = ""
    committed_ms: str = ""


@dataclass(frozen=True)
class Recipe:
    """The steps of an operation; all but the last must succeed, also where a refusal is expected.

    `answer` is a regular expression for what the last step returns, where the operation's rows are not it.
    """

    steps: tuple[Step, ...]
    answer: str = ""


Recipes = dict[str, dict[str, Recipe]]


def recipe(*steps: Step, answer: str = "") -> Recipe:
    """Write a recipe down."""
    return Recipe(steps, answer)
