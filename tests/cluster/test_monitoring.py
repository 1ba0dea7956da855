"""Monitoring: every process is a target that is up, rules read metrics that exist, an alert is received."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from lakehouse.model import placement
from lakehouse.model.inventory import Inventory
from lakehouse.monitoring import expressions, panels
from suites.testbed.waiting import wait_for
from tests.cluster import changing
from tests.cluster.changing import Verb
from tests.cluster.machines import Machines
from tests.cluster.monitoring import ALERT_SECONDS, Prometheus, alerts_of, job_of_flink, received

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

# Scrapes of a cluster that has just started still see processes and tables for the first time.
QUIET_SECONDS = 180


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
    expected |= {
        (f"{service.name}_executors", host.name)
        for host in placed.hosts
        for service in placed.services[host.name]
        if any(listener.executor_metrics for listener in service.listeners)
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


def test_rules_and_panels_name_no_absent_metric(
    cluster: Inventory, prometheus: Prometheus, verb: Verb
) -> None:
    if not prometheus.query("lakehouse_backup_failed"):
        process = verb.run("backup")
        assert process.returncode == 0, process
        wait_for("the backup's metrics", lambda: prometheus.query("lakehouse_backup_failed"), seconds=60)
    process = verb.run("doctor", "--export")
    assert "the metrics of doctor" not in process.stderr, process
    wait_for("doctor's metrics", lambda: prometheus.query("lakehouse_doctor_errors"), seconds=60)
    with job_of_flink(cluster, "n", {}):
        restarts = "flink_jobmanager_job_numRestarts"
        wait_for("the job's metrics", lambda: prometheus.query(restarts), seconds=60, pause=1)
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


@pytest.mark.longdrill
@pytest.mark.drill
def test_a_stopped_datanode_reaches_the_receiver_and_is_resolved(
    cluster: Inventory, machines: Machines
) -> None:
    host = changing.follower(cluster)
    labels = {"alertname": "TargetDown", "job": "datanode", "host": host.name}
    with received(cluster) as alerts:
        with changing.stopped(machines[host.name], "hdfs-datanode"):
            [alert, *_] = wait_for(
                "the alert", lambda: alerts_of(alerts, "firing", labels), seconds=ALERT_SECONDS, pause=0.5
            )
        assert alert["annotations"]["command"].startswith(".venv/bin/lakehouse ")
        wait_for(
            "its end", lambda: alerts_of(alerts, "resolved", labels), seconds=2 * ALERT_SECONDS, pause=0.5
        )
