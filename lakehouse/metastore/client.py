"""A client of several metastores, with retry, failover to the next endpoint, and a deadline for each call."""

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
    summary,
)
from lakehouse.metastore.metrics import Metrics
from lakehouse.metastore.options import Endpoint, Options, endpoints
from lakehouse.metastore.pool import Pool

# After these errors a connection may still deliver the rest of a reply.
_BROKEN = (OSError, ReplyError, DeadlineError)


class _FailedError(Exception):
    """A call has no known result; `sent` is whether the endpoint may have received the request.

    With `answered` the endpoint works, and an error within it ended the call. `__cause__` is that error.
    """

    def __init__(self, why: str, *, sent: bool, answered: bool = False) -> None:
        super().__init__(why)
        self.sent, self.answered = sent, answered


class _Target:
    """An endpoint with its connections, its breaker, and the variants of methods that it supports."""

    def __init__(self, endpoint: Endpoint, options: Options, clock: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self.pool = Pool(endpoint, options)
        self.breaker = Breaker(options.failures, options.rest, clock)
        self.supported: dict[str, Variant] = {}

    def call(self, method: str, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        """Call a method or a variant of it; _FailedError where the result is unknown."""
        variants, supported = calls.variants(method), self.supported.get(method)
        # First the variant that answered last; the others in case the metastore has become another release.
        for variant in sorted(variants, key=lambda candidate: candidate is not supported):
            try:
                answer = self._try(variant, arguments, deadline)
            except TApplicationException as error:
                if error.type == TApplicationException.UNKNOWN_METHOD:
                    continue
                if not calls.repeatable(method):
                    # The metastore failed on the way, and may have changed something.
                    raise _FailedError(summary(error), sent=True, answered=True) from error
                raise MetastoreError(f"{self.endpoint}: {method}: {summary(error)}") from None
            else:
                self.supported[method] = variant
                return variant.answer(answer)
        methods = ", ".join(variant.method for variant in variants)
        raise UnsupportedError(f"{self.endpoint} knows no {methods}")

    def _try(self, variant: Variant, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        sent = False
        try:
            with self.pool.connection(deadline) as connection:
                try:
                    return connection.call(variant.method, variant.arguments(*arguments), deadline)
                except TException as error:
                    if not connection.sent:
                        raise
                    # The whole answer was read: the pool keeps the connection, so it must not see the error.
                    refusal = error
                finally:
                    sent = connection.sent
        except _BROKEN as error:
            raise _FailedError(summary(error), sent=sent) from error
        raise refusal


class Metastore:
    """One or several metastores of the same catalog; thread-safe.

    A call tries the endpoint that answered last first. Exceptions that the metastore declares, such as
    `NoSuchObjectException`, are raised unchanged; everything else is a MetastoreError. Only arguments that
    the bindings cannot serialize raise Python's own errors, and nothing was sent then.
    """

    def __init__(
        self,
        addresses: str | Sequence[Endpoint],
        options: Options | None = None,
        *,
        registry: CollectorRegistry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Parse `addresses`, as in `hive.metastore.uris`, and connect at the first call; UsageError."""
        self.options = options or Options()
        parsed = endpoints(addresses) if isinstance(addresses, str) else tuple(addresses)
        self._targets = [_Target(endpoint, self.options, clock) for endpoint in parsed]
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
        """Close all connections; those in use are closed when they are returned."""
        for target in self._targets:
            target.pool.close()

    def metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return self._metrics.text()

    def call(
        self,
        method: str,
        *arguments: Any,
        seconds: float | None = None,
        applied: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a method of the bindings, and return its answer within `seconds` (`Options.total`).

        A change is retried only if it was not sent. If it was sent and no complete reply arrives, or the
        reply is an internal error, `applied` reads back whether the change is there, beyond the deadline:
        with True the call returns None, otherwise, also where `applied` raises, it raises OutcomeError.
        Raises DeadlineError, at once with no seconds, UnavailableError, ReplySizeError, BusyError and
        UnsupportedError, and the exceptions that the metastore declares.
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
        reasons: dict[str, str] = {}
        cause: BaseException | None = None
        sent = large = False
        if deadline.over:
            raise _late(method, deadline, reasons)
        for number in range(self.options.rounds):
            if number:
                self._pause(number, deadline, method, reasons)
            for position, target in self._order():
                label = str(target.endpoint)
                if not target.breaker.allows():
                    reasons.setdefault(label, "it is left alone after many failures")
                    continue
                try:
                    return self._call_target(position, target, method, arguments, deadline)
                except _FailedError as failure:
                    reasons[label], cause = str(failure), failure.__cause__
                    if failure.sent and not calls.repeatable(method):
                        return _read_back(method, f"{label}: {failure}", applied, cause)
                    sent = sent or failure.sent
                    large = large or isinstance(cause, ReplySizeError)
                if deadline.over:
                    raise _late(method, deadline, reasons) from cause
            if large:
                # A retry would get a reply of the same size.
                raise ReplySizeError(f"{method}: {_joined(reasons)}") from cause
        raise UnavailableError(f"{method}: {_joined(reasons)}", sent=sent) from cause

    def _call_target(
        self, position: int, target: _Target, method: str, arguments: tuple[Any, ...], deadline: Deadline
    ) -> Any:
        """Call an endpoint, and record whether it answered; a refusal is an answer too."""
        try:
            answer = target.call(method, arguments, deadline)
        except _FailedError as failure:
            if failure.answered:
                self._record_answer(position, target)
            else:
                target.breaker.record_failure()
                self._count(target, "failed")
            raise
        except BusyError:
            target.breaker.release_probe()
            self._count(target, "busy")
            raise
        except (TException, MetastoreError):
            self._record_answer(position, target)
            raise
        except BaseException:
            # Interrupted by the caller: this is no result of the endpoint.
            target.breaker.release_probe()
            raise
        self._record_answer(position, target)
        return answer

    def _record_answer(self, position: int, target: _Target) -> None:
        target.breaker.record_success()
        self._count(target, "ok")
        self._first = position

    def _count(self, target: _Target, end: str) -> None:
        self._metrics.tries.labels(str(target.endpoint), end).inc()

    def _order(self) -> Iterator[tuple[int, _Target]]:
        first, count = self._first, len(self._targets)
        for step in range(count):
            position = (first + step) % count
            yield position, self._targets[position]

    def _pause(self, number: int, deadline: Deadline, method: str, reasons: dict[str, str]) -> None:
        longest = min(self.options.longest_backoff, self.options.backoff * 2 ** (number - 1))
        pause = longest * random.random()  # noqa: S311 -- no secret
        if deadline.over or deadline.remaining() <= pause:
            raise _late(method, deadline, reasons)
        time.sleep(pause)

    def known_partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> dict[str, Any]:
        """Return the partitions that exist, by their names, which are requested in chunks.

        A chunk that the metastore refuses, or whose reply is larger than `Options.reply`, is requested in
        halves. All requests share one deadline.
        """
        deadline = self._deadline(seconds)

        def ask(chunk: list[str]) -> Sequence[Any]:
            return list(
                self.call("get_partitions_by_names", database, table, chunk, seconds=deadline.remaining())
            )

        return partitions.by_names(ask, names, self.options.chunk)

    def partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> list[Any]:
        """Return partitions in the order of their names. Many are several requests, which share `seconds`.

        Raises IncompleteError with the first name that the metastore does not know.
        """
        by_name = self.known_partitions(database, table, names, seconds=seconds)
        for name in names:
            if name not in by_name:
                raise IncompleteError(f"{database}.{table} has no partition {name}")
        return [by_name[name] for name in names]

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return list(self.call("get_all_databases"))

    def tables(self, database: str) -> list[str]:
        """Return the names of all tables and views of a database."""
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
    """Return if a change that was sent has been applied; OutcomeError if not, or if that is unknown."""
    message = f"{why}; {method} was sent, and may be done"
    if not applied:
        raise OutcomeError(message) from cause
    try:
        is_applied = applied()
    except Exception as error:
        raise OutcomeError(f"{message}; it could not be read back: {summary(error)}") from error
    if not is_applied:
        raise OutcomeError(f"{message}; it was not there when it was read back") from cause


def _late(method: str, deadline: Deadline, reasons: dict[str, str]) -> DeadlineError:
    why = _joined(reasons) or "no address was tried"
    return DeadlineError(f"{method}: no answer within {deadline.seconds:g} s: {why}")


def _joined(reasons: dict[str, str]) -> str:
    return "; ".join(f"{label}: {why}" for label, why in reasons.items())
