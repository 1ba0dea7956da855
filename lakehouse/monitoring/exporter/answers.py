"""What a service has answered last, and the text of Prometheus for it."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse.monitoring.exporter import certificates
from plugins.module_utils.lakehouse import probes

_GAUGES = {
    "lakehouse_probe_success": "Whether the service has answered its readiness questions.",
    "lakehouse_probe_seconds": "Seconds that the answers took, or that they have been waited for.",
    "lakehouse_certificate_end_seconds": "When the certificate of the service ends, in seconds since 1970.",
}
# A question that is older than this has failed; each probe itself waits at most five seconds at a time.
LIMIT_SECONDS = 10.0


@dataclass
class Target:
    """A service on a host, and its last answers."""

    job: str
    host: str
    probes: list[dict[str, Any]]
    certificate: Mapping[str, Any]
    _began: float | None = None
    _gauges: dict[str, float] = field(default_factory=dict)
    _reason: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Target:
        """Return the target of a row of the settings."""
        return cls(row["job"], row["host"], row["probes"], row.get("certificate", {}))

    def begin(self, now: float) -> bool:
        """Note that a question begins; return False where the last one has no answer yet."""
        with self._lock:
            if self._began is not None:
                return False
            self._began = now
        return True

    def ask(self) -> None:
        """Ask the service, and keep its answers. What changes is logged."""
        began = time.monotonic()
        gauges: dict[str, float] = {}
        reasons = []
        if self.probes:
            reasons = [reason for reason in map(_reason, self.probes) if reason]
            gauges["lakehouse_probe_success"] = float(not reasons)
            gauges["lakehouse_probe_seconds"] = time.monotonic() - began
        if self.certificate:
            try:
                gauges["lakehouse_certificate_end_seconds"] = certificates.expires(**self.certificate)
            except OSError as error:
                reasons.append(str(error))
        reason = reasons[0] if reasons else ""
        if reason != self._reason:
            sys.stderr.write(f"{self.job} on {self.host}: {reason or 'answers'}\n")
        with self._lock:
            self._began, self._gauges, self._reason = None, gauges, reason

    def gauges(self, now: float) -> dict[str, float]:
        """Return the values of the last answers, or a failure where the service has kept us waiting."""
        with self._lock:
            waited = now - self._began if self._began is not None else 0.0
            if self.probes and waited > LIMIT_SECONDS:
                return self._gauges | {"lakehouse_probe_success": 0.0, "lakehouse_probe_seconds": waited}
            return dict(self._gauges)


def _reason(probe: dict[str, Any]) -> str | None:
    try:
        return probes.ask(probe)
    except Exception as error:  # noqa: BLE001 -- an unexpected response must not end the probes
        return f"{probe}: {error!r}"


def exposition(targets: Iterable[Target], now: float) -> str:
    """Return the metrics of all targets in Prometheus' text format."""
    values = [(target, target.gauges(now)) for target in targets]
    return "".join(_lines(name, values) for name in _GAUGES)


def _lines(name: str, values: Iterable[tuple[Target, Mapping[str, float]]]) -> str:
    samples = [
        f"{name}{{job={json.dumps(target.job)},host={json.dumps(target.host)}}} {gauges[name]}\n"
        for target, gauges in values
        if name in gauges
    ]
    return f"# HELP {name} {_GAUGES[name]}\n# TYPE {name} gauge\n{''.join(samples)}" if samples else ""
