"""Keeps what a metastore has answered, for a while: no longer than agreed, and never across a change."""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cachetools import LRUCache
from hive_metastore import ttypes
from prometheus_client import CollectorRegistry, Counter, generate_latest

from lakehouse.metastore import about, calls
from lakehouse.metastore.about import EVERYTHING, Kind, Name
from lakehouse.metastore.api import Client, Reply, Stale
from lakehouse.metastore.errors import DeadlineError, UnavailableError

# How many of each kind are kept. Lists of names are asked for each time: what is new is looked for in them.
SIZES: Mapping[Kind, int] = {
    Kind.DATABASE: 1_000,
    Kind.TABLE: 5_000,
    Kind.PARTITION: 50_000,
    Kind.STATISTICS: 5_000,
    Kind.FUNCTION: 1_000,
    Kind.NAMES: 0,
}
# What a metastore says of something that is there no more.
_GONE = (
    ttypes.NoSuchObjectException,
    ttypes.UnknownDBException,
    ttypes.UnknownPartitionException,
    ttypes.UnknownTableException,
)
# How `get_partitions_by_names` answers, one by one.
_PARTITION = "get_partition_by_name"


class _Key(NamedTuple):
    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class _Kept:
    # Bytes: a caller's change of what was given must not change what is kept, and a copy of an
    # object takes eight times as long.
    pickled: bytes
    name: Name
    at: float


@dataclass(frozen=True)
class Limits:
    """How long and how much a cache keeps.

    An answer is given for `ttl` seconds. Asked for after that share of them which `refresh` says, it is still
    given at once, and a thread asks for it anew. `sizes` are those that differ from SIZES; 0 keeps nothing.
    """

    ttl: float = 60.0
    refresh: float = 0.75
    sizes: Mapping[Kind, int] = field(default_factory=dict)


class Cached(Client):
    """A client before another one, which is asked only for what is not kept, or not any more.

    Changes made through this client, and `forget`, take away what they are about; those of others are seen
    after `Limits.ttl`, or by a `Follower`. What is given is the caller's own, to change and write back.
    """

    def __init__(
        self,
        client: Client,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """Keep nothing yet."""
        self._client, self._limits, self._clock = client, limits or Limits(), clock
        self._kept: dict[Kind, LRUCache[_Key, _Kept]] = {
            kind: LRUCache(size) for kind, size in {**SIZES, **self._limits.sizes}.items() if size
        }
        self._lock = threading.Lock()
        # What was asked for before something was forgotten is not kept: it may be what was forgotten.
        self._forgotten = 0
        self._renewed: set[_Key] = set()
        self._queue: queue.SimpleQueue[_Key | None] = queue.SimpleQueue()
        self._renewing: threading.Thread | None = None
        self._closed = threading.Event()
        self._registry = registry or CollectorRegistry()
        self._count = Counter(
            "lakehouse_metastore_cache", "What was asked of the cache: hit, miss, stale, renewed",
            ["kind", "end"], registry=self._registry,
        )  # fmt: skip

    def metrics(self) -> str:
        """Return what the cache was asked for until now, in Prometheus' text format."""
        return generate_latest(self._registry).decode()

    def close(self) -> None:
        """End the thread that renews, and close the client."""
        self._closed.set()
        self._queue.put(None)
        self._client.close()

    def forget(self, names: Iterable[Name] = (EVERYTHING,)) -> None:
        """Keep nothing of these any more."""
        gone = frozenset(names)
        if not gone:
            return
        with self._lock:
            self._forgotten += 1
            for kind, kept in self._kept.items():
                for key in [key for key, one in kept.items() if _outdated(kind, one.name, gone)]:
                    del kept[key]

    def call(
        self,
        method: str,
        *arguments: Any,
        seconds: float | None = None,
        applied: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a method as the client does; what a change is about is forgotten, however it ends."""
        if calls.repeatable(method):
            return self.ask(method, *arguments, seconds=seconds).value
        try:
            return self._client.call(method, *arguments, seconds=seconds, applied=applied)
        finally:
            self.forget(about.changed(method, arguments))

    def ask(
        self, method: str, *arguments: Any, seconds: float | None = None, stale: Stale | None = None
    ) -> Reply:
        """Return what is kept for no longer than agreed, or what the client answers.

        Where it cannot, and the caller takes `stale` ones, what is kept for no longer than that.
        """
        kind = about.kind(method)
        if kind is None or kind not in self._kept:
            return self._client.ask(method, *arguments, seconds=seconds, stale=stale)
        key = _Key(method, _hashable(arguments))
        if reply := self._found(kind, key, self._limits.ttl):
            self._count.labels(kind, "hit").inc()
            if reply.age_s >= self._limits.refresh * self._limits.ttl:
                self._renew(key)
            return reply
        self._count.labels(kind, "miss").inc()
        try:
            return self._load(key, seconds, stale)
        except (UnavailableError, DeadlineError) as error:
            reply = self._found(kind, key, stale.age_s) if stale else None
            if not reply:
                raise
            self._count.labels(kind, "stale").inc()
            return Reply(reply.value, reply.age_s, stale_possible=True, why=error.message)

    def known_partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> dict[str, Any]:
        """Return the partitions that there are, by their names; the client is asked for what is not kept."""
        if Kind.PARTITION not in self._kept:
            return self._client.known_partitions(database, table, names, seconds=seconds)
        keys = {name: _Key(_PARTITION, (database, table, name)) for name in names}
        kept = {name: self._found(Kind.PARTITION, key, self._limits.ttl) for name, key in keys.items()}
        lacking = [name for name, reply in kept.items() if not reply]
        self._count.labels(Kind.PARTITION, "hit").inc(len(kept) - len(lacking))
        self._count.labels(Kind.PARTITION, "miss").inc(len(lacking))
        found = {name: reply.value for name, reply in kept.items() if reply}
        if lacking:
            forgotten, at = self._forgotten, self._clock()
            asked = self._client.known_partitions(database, table, lacking, seconds=seconds)
            for name, one in asked.items():
                found[name] = one
                self._keep(keys[name], one, at, forgotten)
        return {name: found[name] for name in keys if name in found}

    def _found(self, kind: Kind, key: _Key, most: float) -> Reply | None:
        with self._lock:
            kept = self._kept[kind].get(key)
            age = self._clock() - kept.at if kept else 0.0
        if not kept or age > most:
            return None
        return Reply(pickle.loads(kept.pickled), age)  # noqa: S301 -- from this process alone

    def _load(self, key: _Key, seconds: float | None, stale: Stale | None = None) -> Reply:
        forgotten, at = self._forgotten, self._clock()
        try:
            reply = self._client.ask(key.method, *_given(key.arguments), seconds=seconds, stale=stale)
        except _GONE:
            self._drop(key)
            raise
        if not reply.stale_possible:
            self._keep(key, reply.value, at - reply.age_s, forgotten)
        return reply

    def _keep(self, key: _Key, value: Any, at: float, forgotten: int) -> None:
        kept = _Kept(pickle.dumps(value), about.read(*key), at)
        with self._lock:
            if forgotten == self._forgotten:
                self._of(key)[key] = kept

    def _drop(self, key: _Key) -> None:
        with self._lock:
            self._of(key).pop(key, None)

    def _of(self, key: _Key) -> LRUCache[_Key, _Kept]:
        kind = about.kind(key.method)
        assert kind  # noqa: S101 -- nothing else becomes a key
        return self._kept[kind]

    def _renew(self, key: _Key) -> None:
        """Have an answer asked for anew, unless it is on the list already."""
        with self._lock:
            if key in self._renewed:
                return
            self._renewed.add(key)
            if not self._renewing:
                self._renewing = threading.Thread(target=self._renew_all, name="metastore-cache", daemon=True)
                self._renewing.start()
        self._queue.put(key)

    def _renew_all(self) -> None:
        while (key := self._queue.get()) and not self._closed.is_set():
            try:
                # A caller after the end of its time is told what is wrong. The thread outlives all of it.
                with suppress(Exception):
                    self._load(key, None)
                    self._count.labels(about.kind(key.method), "renewed").inc()
            finally:
                with self._lock:
                    self._renewed.discard(key)


def _outdated(kind: Kind, name: Name, changes: Iterable[Name]) -> bool:
    """Tell whether what is kept under a name may be another one; a database is not by one of its tables."""
    return any(change.meets(name) and not (kind is Kind.DATABASE and change.table) for change in changes)


def _hashable(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(one) if isinstance(one, list) else one for one in arguments)


def _given(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(list(one) if isinstance(one, tuple) else one for one in arguments)
