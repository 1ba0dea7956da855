"""Two metastores that are to hold the same: read from one, written to both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from thrift.Thrift import TException

from lakehouse.errors import UsageError
from lakehouse.metastore import about, calls
from lakehouse.metastore.api import Client, Reply, Stale
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.divergence import DONE, Divergence, DivergenceLog
from lakehouse.metastore.errors import (
    DeadlineError,
    DivergedError,
    MetastoreError,
    OutcomeError,
    UnavailableError,
    told,
)

_NOT_SENT = "not sent"
PRIMARY, SECONDARY = "primary", "secondary"


@dataclass(frozen=True)
class _Plan:
    """Who is read from, and written to first; who is written to then, and whether that has to succeed."""

    first: str
    then: str = ""
    required: bool = False


class Mode(Enum):
    """Who is read from, and who is written to.

    The first name of two is read from and written to first. With SUCCESS the change has to reach the other
    one, too; with FAILURE it may fail there, and is then in the divergence log.
    """

    PRIMARY_ONLY = _Plan(PRIMARY)
    SECONDARY_ONLY = _Plan(SECONDARY)
    PRIMARY_SECONDARY_SUCCESS = _Plan(PRIMARY, SECONDARY, required=True)
    PRIMARY_SECONDARY_FAILURE = _Plan(PRIMARY, SECONDARY)
    SECONDARY_PRIMARY_SUCCESS = _Plan(SECONDARY, PRIMARY, required=True)
    SECONDARY_PRIMARY_FAILURE = _Plan(SECONDARY, PRIMARY)


class Pair(Client):
    """A client of two metastores, as its mode says.

    Locks, transactions and tokens are those of the metastore that is read from. A change that only one of
    them has, or may have, is in the divergence log, whatever the mode.
    """

    def __init__(
        self,
        primary: Client,
        secondary: Client,
        mode: Mode,
        log: DivergenceLog | None = None,
        *,
        seconds: float = 20.0,
    ) -> None:
        """Call no metastore yet. `seconds` are those of a call to both that is given none of its own.

        Raises UsageError where two are written to and there is no log.
        """
        plan = mode.value
        if plan.then and not log:
            raise UsageError(f"{mode.name} writes to two metastores, and needs a divergence log")
        self._sides = {PRIMARY: primary, SECONDARY: secondary}
        self._plan, self._log, self._seconds = plan, log, seconds
        self._first = self._sides[plan.first]
        self._then = self._sides.get(plan.then)

    def close(self) -> None:
        """Close both clients."""
        for one in self._sides.values():
            one.close()

    def call(
        self,
        method: str,
        *arguments: Any,
        seconds: float | None = None,
        applied: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a method: a question of the metastore that is read from, a change of all that are written to.

        Its answer is that of the first. Raises what the first raises: then the other one was not called.
        Raises DivergedError where the other one did not make a change and has to, or could not be recorded,
        and OutcomeError where the first may have made it: then the other one was not called.
        """
        deadline = self._deadline(seconds)
        if not self._then or calls.repeatable(method) or about.of_one_metastore(method):
            return self._first.call(method, *arguments, seconds=deadline.left(), applied=applied)
        try:
            answer = self._first.call(method, *arguments, seconds=deadline.left(), applied=applied)
        except (OutcomeError, DivergedError) as error:
            if unwritten := self._diverged(method, arguments, f"may be done: {error.message}", _NOT_SENT):
                raise type(error)(f"{error.message}; {unwritten}") from error
            raise
        except Exception:
            raise
        except BaseException as error:
            # An interrupt, which may have come between the request and its answer.
            self._diverged(method, arguments, f"may be done: {type(error).__name__}", _NOT_SENT)
            raise
        try:
            self._then.call(method, *arguments, seconds=deadline.left())
        except BaseException as error:
            said = told(error)
            unwritten = self._diverged(method, arguments, DONE, f"{type(error).__name__}: {said}")
            if not isinstance(error, MetastoreError | TException):
                raise
            if unwritten:
                raise DivergedError(unwritten) from error
            if self._plan.required:
                raise DivergedError(
                    f"{method} was made in the {self._plan.first} metastore, and not in the"
                    f" {self._plan.then} one: {said}"
                ) from error
        return answer

    def ask(
        self, method: str, *arguments: Any, seconds: float | None = None, stale: Stale | None = None
    ) -> Reply:
        """Ask the metastore that is read from; where it does not answer, the other one, if it may be `stale`.

        That may lag behind: its answer is `stale_possible`.
        """
        deadline = self._deadline(seconds)
        if not self._then or not stale or not stale.secondary:
            return self._first.ask(method, *arguments, seconds=deadline.left(), stale=stale)
        try:
            # A silent one leaves time for the other.
            return self._first.ask(method, *arguments, seconds=deadline.left() / 2, stale=stale)
        except (UnavailableError, DeadlineError) as error:
            why = f"the {self._plan.first} metastore does not answer: {error.message}"
        try:
            reply = self._then.ask(method, *arguments, seconds=deadline.left(), stale=stale)
        except (UnavailableError, DeadlineError) as error:
            raise UnavailableError(f"{why}; nor does the {self._plan.then} one: {error.message}") from error
        return replace(reply, stale_possible=True, why=why)

    def known_partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> dict[str, Any]:
        """Return the partitions that there are in the metastore that is read from, by their names."""
        return self._first.known_partitions(
            database, table, names, seconds=self._seconds if seconds is None else seconds
        )

    def _deadline(self, seconds: float | None) -> Deadline:
        return Deadline(self._seconds if seconds is None else seconds)

    def _diverged(self, method: str, arguments: tuple[Any, ...], first: str, then: str) -> str:
        """Write a difference down; return what is lost where that cannot be."""
        assert self._log  # noqa: S101 -- there is one where two are written to
        said = {self._plan.first: first, self._plan.then: then}
        try:
            self._log.add(Divergence(method, arguments, said[PRIMARY], said[SECONDARY]))
        except OSError as error:
            return (
                f"{method}: {self._plan.first} {first}, {self._plan.then} {then};"
                f" and {self._log.path} cannot be written: {error.strerror}"
            )
        return ""
