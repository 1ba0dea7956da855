"""Monitoring: every process is a target that is up, rules read metrics that exist, an alert is received."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from lakehouse.monitoring import expressions, panels
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.changing import Verb
from tests.cluster.machines import Machines

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# From a stopped process to the receiver.
ALERT_SECONDS = 60
# Scrapes of a cluster that has just started still see processes and tables for the first time.
QUIET_SECONDS = 180


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


@pytest.fixture
def prometheus(cluster: Inventory) -> Prometheus:
    return Prometheus(cluster)


def test_every_process_with_metrics_is_a_target_that_is_up(
    cluster: Inventory, prometheus: Prometheus
) -> None:
    placed = placement.read(cluster)
    expected = {
        (service.name, host.name)
        for host in placed.hosts
        for service in placed.services[host.name]
        if any(listener.metrics for listener in service.listeners)
    }

    states: dict[tuple[str, str], str] = {}

    def all_up() -> bool:
        targets = prometheus.get("targets", state="active")["activeTargets"]
        states.update(
            {
                (target["labels"]["job"], target["labels"]["host"]): target["lastError"] or target["health"]
                for target in targets
            }
        )
        return set(states.values()) == {"up"}

    with suppress(TimeoutError):
        wait_for("every target is up", all_up, seconds=60, pause=1)
    assert states == dict.fromkeys(expected, "up")


def test_the_units_of_the_packages_which_listen_on_every_address_do_not_run(
    machines: Machines,
) -> None:
    command = "systemctl list-units --no-legend --plain --state=active 'prometheus*'"
    running = {name: machine.run(command) for name, machine in machines.items()}
    assert running == dict.fromkeys(machines, "")


def test_a_scrape_creates_no_series(prometheus: Prometheus) -> None:
    """Labels whose values change would fill the memory: a quiet cluster has the same series each time."""

    def added() -> list[dict[str, Any]]:
        return prometheus.query("max_over_time(scrape_series_added[1m]) > 0")

    wait_for("a minute without new series", lambda: not added(), seconds=QUIET_SECONDS, pause=5)


def test_every_collector_of_the_hosts_works(prometheus: Prometheus) -> None:
    """What Prometheus has seen before its own restart it shows for five minutes."""
    failed = "node_scrape_collector_success == 0 or node_textfile_scrape_error > 0"
    wait_for("no collector fails", lambda: not prometheus.query(failed), seconds=330, pause=1)


def test_rules_and_panels_name_no_absent_metric(prometheus: Prometheus, verb: Verb) -> None:
    if not prometheus.query("lakehouse_backup_failed"):
        process = verb.run("backup")
        assert process.returncode == 0, process
        wait_for("the backup's metrics", lambda: prometheus.query("lakehouse_backup_failed"), seconds=60)
    names = set(prometheus.get("label/__name__/values"))
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert rules
    assert {rule["health"] for rule in rules} == {"ok"}, rules
    absent = {
        rule["name"]: missing for rule in rules if (missing := expressions.metrics(rule["query"]) - names)
    }
    absent |= {
        panel.title: missing
        for panel in panels.every()
        # Prometheus itself has it while an alert fires.
        if (missing := expressions.metrics(panel.expr) - names - {"ALERTS"})
    }
    assert absent == {}
    assert expressions.metrics("rate(no_such_metric_total[5m]) > 1") - names == {"no_such_metric_total"}


@contextmanager
def received(uri: str) -> Iterator[list[dict[str, Any]]]:
    """Listen at a webhook's URI; yield the list of alerts, which grows as they come."""
    alerts: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            alerts.extend(json.loads(body)["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    place = urlsplit(uri)
    with ThreadingHTTPServer((str(place.hostname), int(place.port or 80)), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield alerts
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.drill
def test_a_stopped_datanode_reaches_the_receiver_and_is_resolved(
    cluster: Inventory, machines: Machines
) -> None:
    host = changing.follower(cluster)
    [webhook] = cluster.hosts[0].variables["monitoring_receivers"][0]["webhook_configs"]

    def named(alerts: list[dict[str, Any]], status: str) -> list[dict[str, Any]]:
        return [
            alert
            for alert in alerts
            if alert["status"] == status
            and (alert["labels"]["job"], alert["labels"]["host"]) == ("datanode", host.name)
        ]

    with received(webhook["url"]) as alerts:
        with changing.stopped(machines[host.name], "hdfs-datanode"):
            [alert, *_] = wait_for(
                "the alert", lambda: named(alerts, "firing"), seconds=ALERT_SECONDS, pause=0.5
            )
        assert alert["labels"]["alertname"] == "TargetDown"
        assert alert["annotations"]["command"].startswith(".venv/bin/lakehouse ")
        wait_for("its end", lambda: named(alerts, "resolved"), seconds=2 * ALERT_SECONDS, pause=0.5)
