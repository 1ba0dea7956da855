"""Where metastores are, and how long and how often a client tries."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakehouse.errors import UsageError

_PORT = 9083


@dataclass(frozen=True)
class Endpoint:
    """One metastore's address."""

    host: str
    port: int = _PORT

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
    waits for one, and `lifetime` after how long one is replaced. With `tls` connections are encrypted, and a
    metastore is refused that cannot prove that it has the name of its endpoint.
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
    tls: ssl.SSLContext | None = None


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """Read addresses such as `thrift://a:9083,thrift://b:9083`; UsageError for what is none."""
    found = []
    for one in filter(None, (part.strip() for part in text.split(","))):
        try:
            parts = urlsplit(one)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme != "thrift" or not host:
            raise UsageError(f"{one}: a metastore's address reads as thrift://node1:{_PORT}")
        found.append(Endpoint(host, port or _PORT))
    if not found:
        raise UsageError(f"no metastore is named; one reads as thrift://node1:{_PORT}")
    return tuple(dict.fromkeys(found))
