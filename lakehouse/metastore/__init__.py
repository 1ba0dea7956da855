"""A client of Hive Metastores whose calls end within a deadline.

    with Metastore("thrift://node1:9083,thrift://node2:9083", Options(user="ann")) as metastore:
        metastore.table("sales", "orders")
        metastore.partitions("sales", "orders", ["day=2026-01-01", "day=2026-01-02"])

The bindings are those in PyIceberg's wheel (`hive_metastore`): `call` takes their methods and their types.
"""

from lakehouse.metastore.client import Metastore
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
)
from lakehouse.metastore.options import Endpoint, Options

__all__ = [
    "BusyError",
    "DeadlineError",
    "Endpoint",
    "IncompleteError",
    "Metastore",
    "MetastoreError",
    "Options",
    "OutcomeError",
    "ReplyError",
    "ReplySizeError",
    "UnavailableError",
    "UnsupportedError",
]
