"""The values of panels over the last hours, from Prometheus."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from lakehouse.maybe import Answer, unknown
from lakehouse.monitoring.panels import Panel
from plugins.module_utils.lakehouse.probes import fetch

HOURS, POINTS = 3, 180
# The most series that a plot shows: more have no colours of their own.
MOST_SERIES = 20
_SECONDS, _MOST_BYTES = 10.0, 4 << 20
_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")
Fetch = Callable[[str], bytes]


@dataclass(frozen=True)
class Plot:
    """The values of a panel by series, one for each of `times` (seconds since the epoch), None for none."""

    times: tuple[int, ...]
    series: Mapping[str, tuple[float | None, ...]]


def read(uri: str, panel: Panel, now: float | None = None, get: Fetch | None = None) -> Answer[Plot]:
    """Request POINTS values of the last HOURS from the Prometheus at `uri`; return the plot, or why not.

    The interface: https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries.
    """
    step = HOURS * 3600 // POINTS
    end = int(time.time() if now is None else now) // step * step
    times = tuple(range(end - HOURS * 3600, end + 1, step))
    query = urlencode({"query": panel.expr, "start": times[0], "end": end, "step": step})
    try:
        body = (get or _get)(f"{uri}/api/v1/query_range?{query}")
    except OSError as error:
        return unknown(f"Prometheus does not answer: {error}")
    return Answer(body).then(lambda text: _plot(json.loads(text), panel, times))


def _get(url: str) -> bytes:
    return fetch(url, timeout=_SECONDS, most=_MOST_BYTES)


def _plot(document: Any, panel: Panel, times: tuple[int, ...]) -> Plot:
    series = {}
    for row in document["data"]["result"][:MOST_SERIES]:
        values = {int(at): _number(value) for at, value in row["values"]}
        series[_legend(panel.legend, row["metric"])] = tuple(values.get(at) for at in times)
    return Plot(times, series)


def _number(text: str) -> float | None:
    """Return a value of Prometheus; None for NaN and infinity, which JSON does not know."""
    value = float(text)
    return value if abs(value) < float("inf") else None


def _legend(template: str, labels: Mapping[str, str]) -> str:
    return _LABEL.sub(lambda match: str(labels.get(match[1], "")), template)
