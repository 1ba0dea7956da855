"""Look a variable up as a host has it: its inventory's value, completed by what that leaves unsaid.

``lookup('effective', 'lakehouse_ports')`` is that of this host, and with ``host=`` that of another one:
``hostvars`` knows the inventory alone, and no default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse import defaults

# Raw variables by process and host. A task is a process of its own, in which no inventory changes any more,
# and asks for ports a hundred times.
_SEEN: dict[tuple[int, str], dict[str, Any]] = {}


def _raw(hostvars: Any, host: str) -> dict[str, Any]:
    """Return what the inventory says of a host and what it leaves unsaid, not evaluated."""
    key = (os.getpid(), host)
    if key not in _SEEN:
        _SEEN[key] = defaults.completed(hostvars.raw_get(host))
    return _SEEN[key]


class LookupModule(LookupBase):
    """One value per name."""

    def run(self, terms: list[str], variables: Mapping[str, Any] | None = None, **options: Any) -> list[Any]:
        """Return the values of the variables that ``terms`` name."""
        known = variables or {}
        host = str(options.get("host", known["inventory_hostname"]))
        raw = _raw(known["hostvars"], host)
        templar = self._templar.copy_with_new_env(available_variables={**known, **raw})
        return [defaults.table(name, templar.template(raw[name])) for name in terms]
