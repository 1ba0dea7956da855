"""Look up the effective value of a variable: the inventory's value, completed by defaults.

``lookup('effective', 'lakehouse_ports')`` is the value of this host, and with ``host=`` of another host:
``hostvars`` has the inventory's values only, without defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse.model import defaults

# Raw variables by process and host. A task is a process of its own, in which no inventory changes any more,
# and asks for ports a hundred times.
_RAW_BY_HOST: dict[tuple[int, str], dict[str, Any]] = {}


def _raw(hostvars: Any, host: str) -> dict[str, Any]:
    """Return the inventory's variables of a host with defaults, not evaluated."""
    key = (os.getpid(), host)
    if key not in _RAW_BY_HOST:
        _RAW_BY_HOST[key] = defaults.completed(hostvars.raw_get(host))
    return _RAW_BY_HOST[key]


class LookupModule(LookupBase):
    """One value per name."""

    def run(self, terms: list[str], variables: Mapping[str, Any] | None = None, **options: Any) -> list[Any]:
        """Return the values of the variables that ``terms`` name."""
        play_variables = variables or {}
        host = str(options.get("host", play_variables["inventory_hostname"]))
        raw = _raw(play_variables["hostvars"], host)
        templar = self._templar.copy_with_new_env(available_variables={**play_variables, **raw})
        return [defaults.table(name, templar.template(raw[name])) for name in terms]
