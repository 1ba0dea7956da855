"""One facade per engine, all with the same face."""

from __future__ import annotations


class EngineError(Exception):
    """An engine refused a statement: which engine, which statement, and its words."""

    def __init__(self, engine: str, statement: str, message: str) -> None:
        super().__init__(f"{engine}: {message}\nstatement: {statement}")
        self.engine = engine
        self.statement = statement
        self.message = message
