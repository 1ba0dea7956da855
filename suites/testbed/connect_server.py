"""The Spark Connect server, through which all tests send their statements."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from suites.testbed import waiting
from suites.testbed.endpoints import Endpoints
from suites.testbed.nodes import Nodes

_SECONDS = 120


@contextmanager
def running(endpoints: Endpoints, nodes: Nodes) -> Iterator[None]:
    """Run the server during the block: start it and stop it again, unless it runs already."""
    spark = endpoints.spark
    address = urlsplit(spark.connect_url)

    def answers() -> bool:
        with socket.create_connection((address.hostname, address.port), timeout=2):
            return True

    was_stopped = not nodes.is_running(spark.connect_host, spark.connect_unit)
    if was_stopped:
        nodes.start(spark.connect_host, spark.connect_unit)
    try:
        waiting.wait_for(
            f"{spark.connect_unit} on {spark.connect_host}", answers, seconds=_SECONDS, ignoring=(OSError,)
        )
        yield
    finally:
        if was_stopped:
            nodes.stop(spark.connect_host, spark.connect_unit)
