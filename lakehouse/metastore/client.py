"""Calls one of several metastores, and goes to the next within the call where one does not answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Self

from prometheus_client import CollectorRegistry
from thrift.Thrift import TApplicationException, TException

from lakehouse.metastore import calls, partitions
from lakehouse.metastore.breaker import Breaker
from lakehouse.metastore.calls import Variant
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import (
    BusyError,
    DeadlineError,
    IncompleteError,
    MetastoreError,
    OutcomeError,
    ReplyError,
    ReplySizeError,
    UnavailableError,
    UnsupportedError,
    told,
)
from lakehouse.metastore.metrics import Metrics
from lakehouse.metastore.options import Endpoint, Options, endpoints
from lakehouse.metastore.pool import Pool

# After these it is unknown what comes on a connection next.
_BROKEN = (OSError, ReplyError, DeadlineError)


class _FailedError(Exception):
    """An endpoint has not said how a call ended; `sent` is whether it may have got the request.

    With `answered` it works, and an error within it ended the call. `__cause__` is what was wrong.
    """

    def __init__(self, why: str, *, sent: bool, answered: bool = False) -> None:
        super().__init__(why)
        self.sent, self.answered = sent, answered


class _Target:
    """An endpoint with its connections, its breaker, and the methods that it is known to have."""

    def __init__(self, endpoint: Endpoint, options: Options, clock: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self.pool = Pool(endpoint, options)
        self.breaker = Breaker(options.failures, options.rest, clock)
        self.known: dict[str, Variant] = {}

    def call(self, method: str, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        """Call a method, or one in its place; _FailedError where the endpoint does not say how it ended."""
        every, known = calls.variants(method), self.known.get(method)
        # The one that answered is asked first; the others in case the metastore has become another release.
        for variant in sorted(every, key=lambda one: one is not known):
            try:
                answer = self._try(variant, arguments, deadline)
            except TApplicationException as error:
                if error.type == TApplicationException.UNKNOWN_METHOD:
                    continue
                if not calls.repeatable(method):
                    # It says that the metastore failed on the way, not that it has changed nothing.
                    raise _FailedError(told(error), sent=True, answered=True) from error
                raise MetastoreError(f"{self.endpoint}: {method}: {told(error)}") from None
            else:
                self.known[method] = variant
                return variant.answer(answer)
        tried = ", ".join(variant.method for variant in every)
        raise UnsupportedError(f"{self.endpoint} knows no {tried}")

    def _try(self, variant: Variant, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        sent = False
        try:
            with self.pool.borrowed(deadline) as connection:
                try:
                    return connection.call(variant.method, variant.arguments(*arguments), deadline)
                except TException as error:
                    if not connection.sent:
                        raise
                    # The whole answer was read. The errors of the bindings go through no context manager.
                    refused = error
                finally:
                    sent = connection.sent
        except _BROKEN as error:
            raise _FailedError(told(error), sent=sent) from error
        raise refused


class Metastore:
    """One or several metastores of the same catalog, that many threads may call.

    The last endpoint that answered is asked first. Exceptions that the metastore declares, such as
    `NoSuchObjectException`, come out as they are; everything else is a MetastoreError. Only arguments that
    the bindings cannot write are Python's own errors: nothing was sent then.
    """

    def __init__(
        self,
        addresses: str | Sequence[Endpoint],
        options: Options | None = None,
        *,
        registry: CollectorRegistry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to no address yet. `addresses` as in `hive.metastore.uris`; UsageError for what is none."""
        self.options = options or Options()
        named = endpoints(addresses) if isinstance(addresses, str) else tuple(addresses)
        self._targets = [_Target(one, self.options, clock) for one in named]
        self._first = 0
        self._metrics = Metrics(registry)
        for target in self._targets:
            label = str(target.endpoint)
            self._metrics.used.labels(label).set_function(partial(getattr, target.pool, "used"))
            self._metrics.open.labels(label).set_function(partial(getattr, target.breaker, "resting"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, those in use as soon as they are not."""
        for target in self._targets:
            target.pool.close()

    def metrics(self) -> str:
        """Return what was done until now, in Prometheus' text format."""
        return self._metrics.text()

    def call(
        self,
        method: str,
        *arguments: Any,
        seconds: float | None = None,
        applied: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a method of the bindings, and return its answer within `seconds` (`Options.total`).

        What changes something is sent a second time only where the first was not sent at all. Where no whole
        reply comes after that, or an error within the metastore is the reply, `applied` is asked whether the
        change is there, in time of its own: then it is done, and None is returned. Otherwise, also where
        `applied` raises, OutcomeError. Raises DeadlineError, at once with no seconds, UnavailableError,
        ReplySizeError, BusyError and UnsupportedError, and the exceptions that the metastore declares.
        """
        began = time.monotonic()
        end = "ok"
        try:
            return self._call(method, arguments, self._deadline(seconds), applied)
        except BaseException as error:
            end = type(error).__name__
            raise
        finally:
            self._metrics.seconds.labels(method).observe(time.monotonic() - began)
            self._metrics.calls.labels(method, end).inc()

    def _deadline(self, seconds: float | None) -> Deadline:
        return Deadline(self.options.total if seconds is None else seconds)

    def _call(
        self,
        method: str,
        arguments: tuple[Any, ...],
        deadline: Deadline,
        applied: Callable[[], bool] | None,
    ) -> Any:
        why: dict[str, str] = {}
        cause: BaseException | None = None
        sent = large = False
        if deadline.over:
            raise _late(method, deadline, why)
        for number in range(self.options.rounds):
            if number:
                self._pause(number, deadline, method, why)
            for place, target in self._order():
                label = str(target.endpoint)
                if not target.breaker.allows():
                    why.setdefault(label, "it is left alone after many failures")
                    continue
                try:
                    return self._at(place, target, method, arguments, deadline)
                except _FailedError as failed:
                    why[label], cause = str(failed), failed.__cause__
                    if failed.sent and not calls.repeatable(method):
                        return _read_back(method, f"{label}: {failed}", applied, cause)
                    sent = sent or failed.sent
                    large = large or isinstance(cause, ReplySizeError)
                if deadline.over:
                    raise _late(method, deadline, why) from cause
            if large:
                # It would be as large the next time.
                raise ReplySizeError(f"{method}: {_all(why)}") from cause
        raise UnavailableError(f"{method}: {_all(why)}", sent=sent) from cause

    def _at(
        self, place: int, target: _Target, method: str, arguments: tuple[Any, ...], deadline: Deadline
    ) -> Any:
        """Call an endpoint, and note whether it answered; a refusal is an answer too."""
        try:
            answer = target.call(method, arguments, deadline)
        except _FailedError as failed:
            if failed.answered:
                self._answered(place, target)
            else:
                target.breaker.failed()
                self._count(target, "failed")
            raise
        except BusyError:
            target.breaker.unused()
            self._count(target, "busy")
            raise
        except (TException, MetastoreError):
            self._answered(place, target)
            raise
        except BaseException:
            # Ended from outside: nothing is known of the endpoint.
            target.breaker.unused()
            raise
        self._answered(place, target)
        return answer

    def _answered(self, place: int, target: _Target) -> None:
        target.breaker.worked()
        self._count(target, "ok")
        self._first = place

    def _count(self, target: _Target, end: str) -> None:
        self._metrics.tries.labels(str(target.endpoint), end).inc()

    def _order(self) -> Iterator[tuple[int, _Target]]:
        first, count = self._first, len(self._targets)
        for step in range(count):
            place = (first + step) % count
            yield place, self._targets[place]

    def _pause(self, number: int, deadline: Deadline, method: str, why: dict[str, str]) -> None:
        most = min(self.options.longest_backoff, self.options.backoff * 2 ** (number - 1))
        pause = most * random.random()  # noqa: S311 -- no secret
        if deadline.over or deadline.left() <= pause:
            raise _late(method, deadline, why)
        time.sleep(pause)

    def known_partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> dict[str, Any]:
        """Return the partitions that there are, by their names, which are asked for in chunks.

        A chunk that the metastore refuses, or whose reply is larger than `Options.reply`, is asked for in
        halves. All of them share one deadline.
        """
        deadline = self._deadline(seconds)

        def ask(some: list[str]) -> Sequence[Any]:
            return list(self.call("get_partitions_by_names", database, table, some, seconds=deadline.left()))

        return partitions.by_names(ask, names, self.options.chunk)

    def partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> list[Any]:
        """Return partitions in the order of their names. Many are several requests, which share `seconds`.

        Raises IncompleteError with the first name that the metastore does not know.
        """
        known = self.known_partitions(database, table, names, seconds=seconds)
        for name in names:
            if name not in known:
                raise IncompleteError(f"{database}.{table} has no partition {name}")
        return [known[name] for name in names]

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return list(self.call("get_all_databases"))

    def tables(self, database: str) -> list[str]:
        """Return the names of all tables and views of a database; their partitions are not asked for."""
        return list(self.call("get_all_tables", database))

    def database(self, name: str) -> Any:
        """Return a database; NoSuchObjectException where there is none."""
        return self.call("get_database", name)

    def table(self, database: str, name: str) -> Any:
        """Return a table or a view; NoSuchObjectException where there is none."""
        return self.call("get_table", database, name)

    def partition_names(self, database: str, table: str) -> list[str]:
        """Return the names of all partitions of a table, such as `day=2026-01-01`, however many there are."""
        # -1 is all of them: a number here has 16 bits, and a table may have more partitions.
        return list(self.call("get_partition_names", database, table, -1))


def _read_back(
    method: str, why: str, applied: Callable[[], bool] | None, cause: BaseException | None
) -> None:
    """Return where a change that was sent is there; OutcomeError where it is not, or that is unknown."""
    unknown = f"{why}; {method} was sent, and may be done"
    if not applied:
        raise OutcomeError(unknown) from cause
    try:
        done = applied()
    except Exception as error:
        raise OutcomeError(f"{unknown}; it could not be read back: {told(error)}") from error
    if not done:
        raise OutcomeError(f"{unknown}; it was not there when it was read back") from cause


def _late(method: str, deadline: Deadline, why: dict[str, str]) -> DeadlineError:
    tried = _all(why) or "no address was tried"
    return DeadlineError(f"{method}: no answer within {deadline.seconds:g} s: {tried}")


def _all(why: dict[str, str]) -> str:
    return "; ".join(f"{label}: {one}" for label, one in why.items())
