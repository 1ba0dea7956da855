"""Calls one of several metastores, and goes to the next within the call where one does not answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from lakehouse.catalog import partition_names
from lakehouse.metastore import calls, partitions
from lakehouse.metastore.api import Client, Reply, Stale
from lakehouse.metastore.breaker import Breaker
from lakehouse.metastore.calls import Variant
from lakehouse.metastore.deadline import Deadline
from lakehouse.metastore.errors import (
    BusyError,
    DeadlineError,
    MetastoreError,
    OutcomeError,
    UnavailableError,
    UnsupportedError,
)
from lakehouse.metastore.metrics import Metrics
from lakehouse.metastore.options import Endpoint, Options, endpoints
from lakehouse.metastore.pool import Pool

# After these nobody knows what comes on a connection next.
_BROKEN = (TTransportException, TProtocolException, OSError, EOFError)
_MIXED_UP = frozenset(
    {
        TApplicationException.INVALID_MESSAGE_TYPE,
        TApplicationException.WRONG_METHOD_NAME,
        TApplicationException.BAD_SEQUENCE_ID,
        TApplicationException.PROTOCOL_ERROR,
    }
)


class _FailedError(Exception):
    """An endpoint has not answered; `sent` is whether it may have got the request."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class _Target:
    """An endpoint with its connections, its breaker, and the methods that it is known to have."""

    def __init__(self, endpoint: Endpoint, options: Options, clock: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self.pool = Pool(endpoint, options)
        self.breaker = Breaker(options.failures, options.rest, clock)
        self.known: dict[str, Variant] = {}

    def call(self, method: str, arguments: tuple[Any, ...], deadline: Deadline) -> Any:
        """Call a method, or one in its place; _FailedError where nobody answers."""
        every, known = calls.variants(method), self.known.get(method)
        # The one that answered is asked first; the others in case the metastore has become another release.
        for variant in sorted(every, key=lambda one: one is not known):
            try:
                answer = self._try(variant, arguments, deadline)
            except TApplicationException as error:
                if error.type != TApplicationException.UNKNOWN_METHOD:
                    raise MetastoreError(f"{self.endpoint}: {method}: {error.message}") from None
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
                except _BROKEN:
                    raise
                except TException as error:
                    if isinstance(error, TApplicationException) and error.type in _MIXED_UP:
                        raise TTransportException(message=str(error)) from None
                    # The whole answer was read. The errors of the bindings go through no context manager.
                    refused = error
                finally:
                    sent = connection.sent
        except (*_BROKEN, DeadlineError) as error:
            raise _FailedError(_said(error), sent=sent) from error
        raise refused


class Metastore(Client):
    """One or several metastores of the same catalog, that many threads may call.

    The last endpoint that answered is asked first. Exceptions that the metastore declares, such as
    `NoSuchObjectException`, come out as they are; everything else is a MetastoreError.
    """

    def __init__(
        self,
        addresses: str | Sequence[Endpoint],
        options: Options | None = None,
        *,
        registry: CollectorRegistry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to nobody yet. `addresses` as in `hive.metastore.uris`; UsageError for what is none."""
        self.options = options or Options()
        named = endpoints(addresses) if isinstance(addresses, str) else tuple(addresses)
        self._targets = [_Target(one, self.options, clock) for one in named]
        self._first = 0
        self._metrics = Metrics(registry)
        for target in self._targets:
            label = str(target.endpoint)
            self._metrics.used.labels(label).set_function(partial(getattr, target.pool, "used"))
            self._metrics.open.labels(label).set_function(partial(getattr, target.breaker, "resting"))

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

        What changes something is sent a second time only where the first was not sent at all. Where the
        connection ends after that, `applied` is asked whether the change is there, in time of its own: then
        it is done, and None is returned; otherwise OutcomeError. Raises DeadlineError, UnavailableError,
        BusyError and UnsupportedError, and the exceptions that the metastore declares.
        """
        began = time.monotonic()
        end = "ok"
        try:
            return self._call(method, arguments, Deadline(seconds or self.options.total), applied)
        except BaseException as error:
            end = type(error).__name__
            raise
        finally:
            self._metrics.seconds.labels(method).observe(time.monotonic() - began)
            self._metrics.calls.labels(method, end).inc()

    def ask(
        self,
        method: str,
        *arguments: Any,
        seconds: float | None = None,
        stale: Stale | None = None,  # noqa: ARG002 -- nothing older than now is here
    ) -> Reply:
        """Return the answer that `call` returns: a fresh one, whatever is taken beside it."""
        return Reply(self.call(method, *arguments, seconds=seconds))

    def _call(
        self,
        method: str,
        arguments: tuple[Any, ...],
        deadline: Deadline,
        applied: Callable[[], bool] | None,
    ) -> Any:
        why: dict[str, str] = {}
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
                    why[label] = str(failed)
                    if failed.sent and not calls.repeatable(method):
                        return _read_back(method, f"{label}: {failed}", applied)
                if deadline.over:
                    raise _late(method, deadline, why)
        raise UnavailableError(f"{method}: {_all(why)}")

    def _at(
        self, place: int, target: _Target, method: str, arguments: tuple[Any, ...], deadline: Deadline
    ) -> Any:
        """Call an endpoint, and note whether it answered; a refusal is an answer too."""
        try:
            answer = target.call(method, arguments, deadline)
        except _FailedError:
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

    def partitions(self, database: str, table: str, names: Sequence[str]) -> list[Any]:
        """Return partitions in the order of their names, which are asked for in chunks.

        Raises IncompleteError with the first name that the metastore does not know.
        """
        names_of = {tuple(partition_names.values(name)): name for name in names}

        def ask(some: list[str]) -> Sequence[Any]:
            return list(self.call("get_partitions_by_names", database, table, some))

        def name(found: Any) -> str:
            return names_of.get(tuple(found.values), "")

        return list(partitions.by_names(ask, name, names, self.options.chunk))


def _read_back(method: str, why: str, applied: Callable[[], bool] | None) -> None:
    """Return where a change that was sent is there; OutcomeError where it is not, or nobody can tell."""
    if not applied or not applied():
        raise OutcomeError(f"{why}; {method} was sent, and may be done")


def _late(method: str, deadline: Deadline, why: dict[str, str]) -> DeadlineError:
    return DeadlineError(f"{method}: no answer within {deadline.seconds:g} s: {_all(why)}")


def _said(error: BaseException) -> str:
    if isinstance(error, DeadlineError):
        return error.message
    said = getattr(error, "message", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())[:300]


def _all(why: dict[str, str]) -> str:
    return "; ".join(f"{label}: {one}" for label, one in why.items())
