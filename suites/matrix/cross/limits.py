"""What a proof expects not to work: the report shows it like such a cell of `cells.yml`."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from suites.matrix.cells import Expected


@dataclass(frozen=True)
class Limit:
    """A limit of an engine.

    `reason` is a regular expression for the words of a refusal, or says what is wrong; `link` is the address
    of what explains it.
    """

    expected: Expected
    reason: str
    link: str

    @property
    def mark(self) -> pytest.MarkDecorator:
        """What a test wears that proves it."""
        return pytest.mark.limit(expected=self.expected.value, reason=self.reason, limit=self.link)


def refused(reason: str, link: str) -> Limit:
    """Return a limit that the engine names itself."""
    return Limit(Expected.REFUSED, reason, link)


def wrong(reason: str, link: str) -> Limit:
    """Return a limit without an error: the answer is not the right one."""
    return Limit(Expected.WRONG, reason, link)


def marks(limit: Limit | None) -> list[pytest.MarkDecorator]:
    """Return what a parameter wears: nothing where there is no limit."""
    return [limit.mark] if limit else []
