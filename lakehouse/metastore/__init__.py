"""A client of Hive Metastores that no call of which blocks for longer than it was given.

    with Metastore("thrift://node1:9083,thrift://node2:9083", Options(user="ann")) as metastore:
        metastore.table("sales", "orders")
        metastore.partitions("sales", "orders", ["day=2026-01-01", "day=2026-01-02"])

`Cached` stands before another client and keeps what it answers.

The bindings are those in PyIceberg's wheel (`hive_metastore`): `call` takes their methods and their types.
"""

from lakehouse.metastore.about import Kind, Name
from lakehouse.metastore.api import Client, Reply, Stale
from lakehouse.metastore.cached import Cached, Limits
from lakehouse.metastore.client import Metastore
from lakehouse.metastore.errors import (
    BusyError,
    DeadlineError,
    IncompleteError,
    MetastoreError,
    OutcomeError,
    UnavailableError,
    UnsupportedError,
)
from lakehouse.metastore.options import Endpoint, Options

__all__ = [
    "BusyError",
    "Cached",
    "Client",
    "DeadlineError",
    "Endpoint",
    "IncompleteError",
    "Kind",
    "Limits",
    "Metastore",
    "MetastoreError",
    "Name",
    "Options",
    "OutcomeError",
    "Reply",
    "Stale",
    "UnavailableError",
    "UnsupportedError",
]
