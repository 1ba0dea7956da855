"""Look up the readiness probes of a service on this host, from its row of services.yml.

``query('ready_of', 'metastore')`` has the probes that `lakehouse_daemon` runs before the play continues,
without those that depend on processes which the play starts later. ``joined=true`` includes them, and
``settled=true`` gives the probes for the time when every host of the play has started its daemons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse.model import play, readiness


class LookupModule(LookupBase):
    """The probes of all terms, one after the other."""

    def run(
        self,
        terms: list[str],
        variables: Mapping[str, Any] | None = None,
        *,
        joined: bool = False,
        settled: bool = False,
        **_options: Any,
    ) -> list[readiness.Probe]:
        """Return the probes of the services that ``terms`` name."""
        cluster = play.cluster(variables or {}, self._templar)
        probes: list[readiness.Probe] = []
        for service in map(play.row, terms):
            questions = service.settled if settled else readiness.ready(service, alone=not joined)
            probes += readiness.probes(cluster, service, questions, cluster.host)
        return probes
