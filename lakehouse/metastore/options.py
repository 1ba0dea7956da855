"""Where metastores are, and how long and how often a client tries."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass

from lakehouse.errors import UsageError
from lakehouse.terminal import printable

_PORT, _LAST_PORT = 9083, 65_535
_HOST = re.compile(r"[\w.:%-]+")
# An address of IPv6 stands in brackets.
_ADDRESS = re.compile(
    r"thrift://(?:(?P<name>[\w.-]+)|\[(?P<number>[\w.%]*:[\w.:%]*)\])(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True)
class Endpoint:
    """One metastore's address; UsageError for a host or a port that cannot be one."""

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
    """How long and how often a client tries; all times are in seconds.

    `total` bounds a call with all that it tries; `connect` and `read` bound each connection and each answer
    within it, so that a silent endpoint leaves time for the next. A call that may be repeated goes through
    the endpoints `rounds` times, with a pause before each round but the first: up to `backoff`, doubled each
    time up to `longest_backoff`, and a random part of that. After `failures` in a row an endpoint is left
    alone for `rest`; then one call tries it. `connections` is the most per endpoint, `borrow` how long a call
    waits for one, and `lifetime` after how long one is replaced. `chunk` is how many partitions one request
    names at the most, `reply` how many bytes of one reply are read. With `tls` connections are encrypted, and
    a metastore is refused that cannot prove that it has the name of its endpoint.
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
    """Read addresses such as `thrift://a:9083,thrift://b:9083`; UsageError for what is none."""
    found = [_endpoint(part.strip()) for part in text.split(",") if part.strip()]
    if not found:
        raise UsageError(f"no metastore is named; one reads as thrift://node1:{_PORT}")
    return tuple(dict.fromkeys(found))


def _endpoint(text: str) -> Endpoint:
    parts = _ADDRESS.fullmatch(text)
    if not parts:
        raise _no_address(text)
    return Endpoint((parts["name"] or parts["number"]).lower(), int(parts["port"] or _PORT))


def _no_address(text: str) -> UsageError:
    return UsageError(f"{printable(text)}: a metastore's address reads as thrift://node1:{_PORT}")
