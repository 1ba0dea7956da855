"""Look up the command that announces a restart to a service of this host.

``query('announce_of', 'datanode')`` is the command that `lakehouse_daemon` runs before it restarts a serving
unit: from the service's row of services.yml, as its user. `lakehouse restart` runs the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse.model import play, readiness


class LookupModule(LookupBase):
    """The words of the command of one term; nothing for a service without one."""

    def run(self, terms: list[str], variables: Mapping[str, Any] | None = None, **_options: Any) -> list[str]:
        """Return the command of the service that ``terms`` names."""
        [service] = map(play.row, terms)
        host = play.cluster(variables or {}, self._templar).host
        if service.announce is None:
            return []
        account = host.variables["lakehouse_users"][service.user]
        return ["runuser", "-u", str(account), "--", *readiness.before_stop(service.announce, host)]
