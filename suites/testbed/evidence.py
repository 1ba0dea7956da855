"""What a test says about itself: properties for the report, and proof when it fails."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lakehouse.errors import LakehouseError
from suites.testbed.endpoints import Endpoints
from suites.testbed.nodes import CommandError, Nodes

STATEMENTS = pytest.StashKey[list[str]]()
# What the work took that a test only waited for, where others are at it side by side.
SECONDS = pytest.StashKey[float]()
CLUSTER = pytest.StashKey[tuple[Nodes, Endpoints]]()

_LONGEST = 400


def describe(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Give the JUnit file what the report's matrix is made of: who was asked what, a limit, statements."""
    if call.when == "setup":
        marker = item.get_closest_marker("operation")
        callspec = getattr(item, "callspec", None)
        parameters = callspec.params if callspec else {}
        if marker:
            item.user_properties.append(("operation", _filled(marker.args[0], parameters)))
        engine = marker.kwargs.get("engine", "spark") if marker else "spark"
        item.user_properties.append(("engine", _filled(engine, parameters)))
        if "fmt" in parameters:
            item.user_properties.append(("format", parameters["fmt"].name))
        if limit := item.get_closest_marker("limit"):
            item.user_properties.extend(limit.kwargs.items())
    if call.when == "call" and STATEMENTS in item.stash:
        statements = item.stash[STATEMENTS]
        item.user_properties.extend(("statement", text[:_LONGEST]) for text in dict.fromkeys(statements))


def _filled(text: str, parameters: Mapping[str, object]) -> str:
    """Put the test's parameters where the text names one, like `{reader}`."""
    return text.format(**{name: str(value) for name, value in parameters.items()})


def measure(item: pytest.Item, report: pytest.TestReport) -> None:
    """Record the engine's seconds for a test that only waited for it."""
    if report.when == "call":
        report.duration = item.stash.get(SECONDS, report.duration)


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add to a failure the last statements, and the last lines that the services logged."""
    add = getattr(report.longrepr, "addsection", None)
    if add is None:
        return
    if STATEMENTS in item.stash:
        add("last statements", "\n".join(item.stash[STATEMENTS][-5:]))
    if CLUSTER in item.config.stash:
        nodes, endpoints = item.config.stash[CLUSTER]
        for host, unit in _services(endpoints):
            add(f"{unit} on {host}", _journal(nodes, host, unit))


def _services(endpoints: Endpoints) -> list[tuple[str, str]]:
    flink = [(endpoints.flink.host, endpoints.units["flink_jobmanager"])] if endpoints.flink else []
    return [
        (endpoints.namenode.host, endpoints.units["namenode"]),
        (endpoints.metastore.host, endpoints.units["metastore"]),
        (endpoints.spark.connect_host, endpoints.spark.connect_unit),
        *flink,
    ]


def _journal(nodes: Nodes, host: str, unit: str) -> str:
    try:
        return nodes.journal(host, unit)
    except (CommandError, LakehouseError, OSError, RuntimeError) as error:
        return f"not to be had: {error}"
