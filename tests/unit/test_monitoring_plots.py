"""Panels, the dashboard that is made of them, and what Prometheus answers for one."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from lakehouse.dev import alertdocs, dashboards
from lakehouse.monitoring import expressions, panels, plots
from lakehouse.monitoring.panels import Panel

PANEL = Panel("Used", "sum by (host) (used)", "{{host}} {{ device }}", "bytes")
NOW = 1_000_000.0


def answered(*rows: object) -> bytes:
    return json.dumps({"status": "success", "data": {"result": rows}}).encode()


def test_a_plot_has_a_value_for_each_time_or_none() -> None:
    urls: list[str] = []

    def get(url: str) -> bytes:
        urls.append(url)
        start = int(parse_qs(urlsplit(url).query)["start"][0])
        metric = {"host": "n1", "device": "sda"}
        return answered(
            {"metric": metric, "values": [[start, "1.5"], [start + 60, "NaN"], [start + 120, "+Inf"]]}
        )

    plot = plots.read("http://p:9090", PANEL, NOW, get).value
    assert plot is not None
    assert len(plot.times) == plots.POINTS + 1
    assert plot.times[-1] <= NOW < plot.times[-1] + 60
    assert plot.series == {"n1 sda": (1.5, *[None] * plots.POINTS)}
    [url] = urls
    assert urlsplit(url).path == "/api/v1/query_range"
    assert parse_qs(urlsplit(url).query)["query"] == [PANEL.expr]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", answered({"metric": {}}), answered({"metric": {}, "values": [[0]]})]
)
def test_an_answer_that_is_none_is_said(body: bytes) -> None:
    assert "cannot be read" in plots.read("http://p:9090", PANEL, NOW, lambda _: body).why


def test_a_prometheus_that_is_away_is_said() -> None:
    def get(_: str) -> bytes:
        raise OSError("connection refused")

    assert (
        plots.read("http://p:9090", PANEL, NOW, get).why == "Prometheus does not answer: connection refused"
    )


def test_more_series_than_colours_are_cut() -> None:
    rows = [{"metric": {"host": str(number)}, "values": []} for number in range(50)]
    plot = plots.read("http://p:9090", PANEL, NOW, lambda _: answered(*rows)).value
    assert plot is not None
    assert len(plot.series) == plots.MOST_SERIES


def test_the_dashboard_is_that_of_the_panels() -> None:
    assert dashboards.FILE.read_text(encoding="utf-8") == dashboards.text(), "next: make docs"
    dashboard = json.loads(dashboards.text())
    plotted = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "timeseries"]
    assert plotted == [panel.title for panel in panels.every()]
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(places) == len(set(places))


def test_every_alert_says_what_failed_what_to_run_and_where_to_read_on() -> None:
    page = alertdocs.PAGE.read_text(encoding="utf-8")
    assert alertdocs.page(page) == page, "next: make docs"
    for rule in alertdocs.rules():
        notes = rule["annotations"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert notes["command"].startswith(".venv/bin/lakehouse ")
        assert notes["runbook"] == f"docs/monitoring.md#{rule['alert'].lower()}"
        assert expressions.metrics(rule["expr"])
