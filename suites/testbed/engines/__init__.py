"""SQL engines, each behind a facade."""

from __future__ import annotations

import re

_LONGEST = 300


class EngineError(Exception):
    """An engine refused a statement; `message` is its own, so that a test can look into it."""

    def __init__(self, engine: str, statement: str, message: str) -> None:
        super().__init__(f"{engine}: {message}\nstatement: {statement}")
        self.engine = engine
        self.statement = statement
        self.message = message


def words(error: Exception) -> str:
    """Return what an engine said when it refused a statement."""
    return error.message if isinstance(error, EngineError) else str(error)


def telling(message: str, reason: str) -> str:
    """Return the line of a message that holds `reason`, a regular expression; the first one if none does."""
    lines = message.splitlines()
    return next((line for line in lines if re.search(reason, line)), lines[0]).strip()[:_LONGEST]
