"""Look up the command that tells a service of this host that it is about to be restarted.

``query('announce_of', 'datanode')`` is what `lakehouse_daemon` runs before it restarts a unit that serves:
from the service's row of services.yml, as its user. `lakehouse restart` runs the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse import play, readiness


class LookupModule(LookupBase):
    """The words of the command of one term; nothing for a service without one."""

    def run(self, terms: list[str], variables: Mapping[str, Any] | None = None, **_options: Any) -> list[str]:
        """Return the command of the service that ``terms`` names."""
        [service] = map(play.row, terms)
        here = play.cluster(variables or {}, self._templar).here
        if service.announce is None:
            return []
        account = here.variables["lakehouse_users"][service.user]
        return ["runuser", "-u", str(account), "--", *readiness.before_stop(service.announce, here)]
