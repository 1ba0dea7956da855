"""A client of Hive Metastores that no call of which blocks for longer than it was given.

    with Metastore("thrift://node1:9083,thrift://node2:9083", user="ann") as metastore:
        metastore.call("get_all_databases")
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
    "UnavailableError",
    "UnsupportedError",
]
