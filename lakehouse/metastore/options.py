"""Endpoints of metastores, and the timeouts, retries and limits of a client."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

from lakehouse.errors import UsageError
from lakehouse.terminal import printable

_PORT, _LAST_PORT = 9083, 65_535
_HOST = re.compile(r"[\w.:%-]+")
# An IPv6 address stands in brackets.
_ADDRESS = re.compile(
    r"thrift://(?:(?P<name>[\w.-]+)|\[(?P<number>[\w.%]*:[\w.:%]*)\])(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True)
class Endpoint:
    """One metastore's address; UsageError for an invalid host or port."""

    host: str
    port: int = _PORT

    def __post_init__(self) -> None:
        if not _HOST.fullmatch(self.host) or not 0 < self.port <= _LAST_PORT:
            raise _no_address(f"{self.host}:{self.port}")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


@dataclass(frozen=True)
class Options:
    """Timeouts, retries and limits of a client; all times are in seconds.

    `total` bounds a call with all its retries; `connect` and `read` bound each connection and each answer
    within it, so that a silent endpoint leaves time for the next. An idempotent call tries all endpoints up
    to `rounds` times, with a random pause before each round but the first: up to `backoff`, doubled each
    time up to `longest_backoff`. After `failures` in a row an endpoint gets no call for `rest`; then one
    probe. `connections` is the maximum per endpoint, `borrow` the timeout for a free one, and `lifetime` the
    age at which one is replaced. `chunk` is the maximum of partition names per request, `reply` the maximum
    of bytes per reply. With `tls` connections are encrypted, and the certificate of a metastore must have
    the host name of its endpoint.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    total: float = 20.0
    connect: float = 3.0
    read: float = 10.0
    rounds: int = 3
    backoff: float = 0.1
    longest_backoff: float = 2.0
    failures: int = 5
    rest: float = 10.0
    connections: int = 8
    borrow: float = 5.0
    lifetime: float = 300.0
    chunk: int = 1000
    reply: int = 64 * 1024 * 1024
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "failures", "connections", "chunk", "reply"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}={getattr(self, name)}: the least is 1")


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """Parse addresses such as `thrift://a:9083,thrift://b:9083`; UsageError for an invalid one."""
    parsed = [_endpoint(part.strip()) for part in text.split(",") if part.strip()]
    if not parsed:
        raise UsageError(f"no metastore is named; one reads as thrift://node1:{_PORT}")
    return tuple(dict.fromkeys(parsed))


def _endpoint(text: str) -> Endpoint:
    parts = _ADDRESS.fullmatch(text)
    if not parts:
        raise _no_address(text)
    return Endpoint((parts["name"] or parts["number"]).lower(), int(parts["port"] or _PORT))


def _no_address(text: str) -> UsageError:
    return UsageError(f"{printable(text)}: a metastore's address reads as thrift://node1:{_PORT}")
