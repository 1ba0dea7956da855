"""What every SQL engine can be asked: all of it is made of the one method that sends a statement."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pytest

from suites.testbed.engines import EngineError, telling, words

Row = tuple[Any, ...]


class Facade(ABC):
    """A session of an engine; `statements` are what the running test has sent, oldest first."""

    statements: list[str]
    # What the engine raises when it does not do as it was told.
    refusal: ClassVar[type[Exception]] = EngineError

    @abstractmethod
    def sql(self, statement: str) -> list[Row]:
        """Run one statement to its end; return its rows."""

    def value(self, query: str) -> Any:
        """Run a query for one row of one column; return it."""
        [[value]] = self.sql(query)
        return value

    def expect(self, query: str, rows: list[Row]) -> None:
        """Fail with the query and both sides unless it returns these rows in this order."""
        got = self.sql(query)
        assert got == rows, f"\nstatement: {query}\nexpected:  {rows}\ngot:       {got}"

    def refuses(self, statement: str, reason: str) -> str:
        """Return the line of the error that holds `reason`, a regular expression; fail if none does."""
        try:
            got = str(self.sql(statement))
        except self.refusal as error:
            got = words(error)
            if re.search(reason, got):
                return telling(got, reason)
        pytest.fail(f"\nstatement: {statement}\nexpected:  an error with {reason!r}\ngot:       {got}")
