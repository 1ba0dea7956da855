"""The metrics of a client, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 20)


class Metrics:
    """The metrics of one client, in its own registry or in that of the caller."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        name = "lakehouse_metastore"
        self.seconds = Histogram(
            f"{name}_call_seconds", "Time of a call, with all it tried", ["method"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.calls = Counter(
            f"{name}_calls", "Calls by how they ended: ok, or the name of the error", ["method", "end"],
            registry=self.registry,
        )  # fmt: skip
        self.tries = Counter(
            f"{name}_tries", "What calls tried at an endpoint, by whether it answered", ["endpoint", "end"],
            registry=self.registry,
        )  # fmt: skip
        self.open = Gauge(
            f"{name}_breaker_open", "1 while an endpoint is left alone", ["endpoint"], registry=self.registry
        )
        self.used = Gauge(
            f"{name}_connections_used", "Connections in use", ["endpoint"], registry=self.registry
        )

    def text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self.registry).decode()
