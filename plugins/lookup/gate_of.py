"""Look up the gate of a service on this host, from its row of services.yml.

``query('gate_of', 'datanode')`` is the probe that `lakehouse_daemon` asks before it restarts a unit that
serves; it is judged as by `lakehouse restart` (module_utils/lakehouse/hdfs_gate.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse.model import play, readiness


class LookupModule(LookupBase):
    """The gates of all terms, one after the other; nothing for a service without one."""

    def run(
        self, terms: list[str], variables: Mapping[str, Any] | None = None, **_options: Any
    ) -> list[readiness.Probe]:
        """Return the probes of the services that ``terms`` name."""
        cluster = play.cluster(variables or {}, self._templar)
        return [probe for row in map(play.row, terms) for probe in readiness.gate(cluster, row, cluster.host)]
