"""A client of Hive Metastores that no call of which blocks for longer than it was given.

    with Metastore("thrift://node1:9083,thrift://node2:9083", Options(user="ann")) as metastore:
        metastore.table("sales", "orders")
        metastore.partitions("sales", "orders", ["day=2026-01-01", "day=2026-01-02"])

`Cached` stands before another client and keeps what it answers; `Pair` stands before two of
them. A `Follower` has a cache forget what others change.

The bindings are those in PyIceberg's wheel (`hive_metastore`): `call` takes their methods and their types.
"""

from lakehouse.metastore.about import Kind, Name
from lakehouse.metastore.api import Client, Reply, Stale
from lakehouse.metastore.cached import Cached, Limits
from lakehouse.metastore.client import Metastore
from lakehouse.metastore.divergence import Divergence, DivergenceLog
from lakehouse.metastore.errors import (
    BusyError,
    DeadlineError,
    DivergedError,
    IncompleteError,
    MetastoreError,
    OutcomeError,
    ReplyError,
    ReplySizeError,
    UnavailableError,
    UnsupportedError,
)
from lakehouse.metastore.follower import Follower, Look
from lakehouse.metastore.options import Endpoint, Options
from lakehouse.metastore.pair import Mode, Pair

__all__ = [
    "BusyError",
    "Cached",
    "Client",
    "DeadlineError",
    "DivergedError",
    "Divergence",
    "DivergenceLog",
    "Endpoint",
    "Follower",
    "IncompleteError",
    "Kind",
    "Limits",
    "Look",
    "Metastore",
    "MetastoreError",
    "Mode",
    "Name",
    "Options",
    "OutcomeError",
    "Pair",
    "Reply",
    "ReplyError",
    "ReplySizeError",
    "Stale",
    "UnavailableError",
    "UnsupportedError",
]
