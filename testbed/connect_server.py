"""The Spark Connect server, through which all tests send their statements."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from testbed import waiting
from testbed.endpoints import Endpoints
from testbed.nodes import Nodes

_SECONDS = 120


@contextmanager
def running(endpoints: Endpoints, nodes: Nodes) -> Iterator[None]:
    """Keep the server running in the block: it is started, and stopped again, unless it runs already."""
    spark = endpoints.spark
    address = urlsplit(spark.connect_url)

    def answers() -> bool:
        with socket.create_connection((address.hostname, address.port), timeout=2):
            return True

    ours = not nodes.is_running(spark.connect_host, spark.connect_unit)
    if ours:
        nodes.start(spark.connect_host, spark.connect_unit)
    try:
        waiting.wait_for(
            f"{spark.connect_unit} on {spark.connect_host}", answers, seconds=_SECONDS, ignoring=(OSError,)
        )
        yield
    finally:
        if ours:
            nodes.stop(spark.connect_host, spark.connect_unit)
