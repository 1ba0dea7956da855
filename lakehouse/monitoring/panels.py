"""The panels of the dashboards, and the file that Grafana imports of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lakehouse import yamlfile

FILE = Path(__file__).with_name("panels.yml")
# Grafana's grid has 24 columns.
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 24
_SOURCE = {"type": "prometheus", "uid": "${source}"}


@dataclass(frozen=True)
class Panel:
    """A plot: `expr` in PromQL, `legend` a template of labels such as `{{host}}`, `unit` one of Grafana's."""

    title: str
    expr: str
    legend: str
    unit: str


@cache
def sections(path: Path = FILE) -> dict[str, tuple[Panel, ...]]:
    """Return the panels by section, in the order of the file."""
    return {
        section["section"]: tuple(Panel(**panel) for panel in section["panels"])
        for section in yamlfile.read(path)
    }


def every() -> tuple[Panel, ...]:
    """Return all panels, in the order of the file."""
    return tuple(panel for members in sections().values() for panel in members)


def dashboard(panels: Mapping[str, tuple[Panel, ...]]) -> dict[str, Any]:
    """Return a dashboard that Grafana imports; it asks for the data source.

    The format: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/.
    """
    return {
        "uid": "lakehouse",
        "title": "Lakehouse",
        "tags": ["lakehouse"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_placed(panels), 1)],
    }


def _placed(panels: Mapping[str, tuple[Panel, ...]]) -> Iterator[dict[str, Any]]:
    """Yield rows and plots with their places in the grid."""
    top = 0
    for section, members in panels.items():
        yield {"type": "row", "title": section, "gridPos": {"x": 0, "y": top, "w": _COLUMNS, "h": 1}}
        top += 1
        for position, panel in enumerate(members):
            column = position * _WIDTH % _COLUMNS
            yield {
                "type": "timeseries",
                "title": panel.title,
                "gridPos": {"x": column, "y": top, "w": _WIDTH, "h": _HEIGHT},
                "datasource": _SOURCE,
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [{"refId": "A", "expr": panel.expr, "legendFormat": panel.legend}],
            }
            if column + _WIDTH == _COLUMNS or position == len(members) - 1:
                top += _HEIGHT
