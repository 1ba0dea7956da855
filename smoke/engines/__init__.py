"""SQL facades of the engines beside Spark: the same face as `smoke.lake.Lake`."""

from __future__ import annotations


class EngineError(Exception):
    """A statement that the engine refused or gave up; `message` is the engine's own."""

    def __init__(self, engine: str, statement: str, message: str) -> None:
        super().__init__(f"{engine}: {message}\nstatement: {statement}")
        self.engine = engine
        self.statement = statement
        self.message = message
