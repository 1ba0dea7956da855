"""The cluster's Prometheus, and the receiver of its alerts."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import requests

from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from suites.testbed.engines.flink import Flink

# From a fault to the receiver.
ALERT_SECONDS = 60


class Prometheus:
    """The HTTP interface of the cluster's Prometheus."""

    def __init__(self, cluster: Inventory) -> None:
        [place] = placement.read(cluster).endpoints("prometheus")
        self._uri = place.uri

    def get(self, path: str, **parameters: str) -> Any:
        response = requests.get(f"{self._uri}/api/v1/{path}", params=parameters, timeout=30)
        response.raise_for_status()
        return response.json()["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        return list(self.get("query", query=expression)["result"])


@contextmanager
def received(cluster: Inventory) -> Iterator[list[dict[str, Any]]]:
    """Listen as the first receiver of the inventory, a webhook; yield its alerts, which grow as they come."""
    [webhook] = cluster.hosts[0].variables["monitoring_receivers"][0]["webhook_configs"]
    alerts: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            alerts.extend(json.loads(body)["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    place = urlsplit(webhook["url"])
    with ThreadingHTTPServer((str(place.hostname), int(place.port or 80)), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield alerts
        finally:
            server.shutdown()
            thread.join()


def alerts_of(
    alerts: Iterable[Mapping[str, Any]], status: str, labels: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return the alerts of a status (firing, resolved) with these labels."""
    return [
        alert for alert in alerts if alert["status"] == status and labels.items() <= alert["labels"].items()
    ]


@contextmanager
def job_of_flink(cluster: Inventory, expression: str, properties: Mapping[str, str]) -> Iterator[None]:
    """Have a job evaluate an expression of `n`, a number that grows by one in each second from zero."""
    [place] = placement.read(cluster).endpoints("flink_sql_gateway")
    with closing(
        Flink.connect(place.uri, properties={**properties, "execution.runtime-mode": "streaming"})
    ) as flink:
        name = f"kit_{secrets.token_hex(4)}"
        numbers = "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '10000'"
        options = f"'connector' = 'datagen', 'rows-per-second' = '1', {numbers}"
        flink.run(f"CREATE TEMPORARY TABLE {name} (n INT) WITH ({options})")
        flink.run(f"CREATE TEMPORARY TABLE {name}_sink (n INT) WITH ('connector' = 'blackhole')")
        job = flink.submit(f"INSERT INTO {name}_sink SELECT {expression} FROM {name}")  # noqa: S608 -- random names
        try:
            yield
        finally:
            flink.run(f"STOP JOB '{job}'")
