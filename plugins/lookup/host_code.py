"""Look up the files of a program that runs on hosts, as entries for `lakehouse_config_files`.

``query('host_code', 'backup', home='/opt/backup')`` has the folders, and each module of the package and of
what it imports of the kit, with its content: there is nothing to render.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase

from lakehouse import host_code
from lakehouse.run import ROOT


class LookupModule(LookupBase):
    """The files of the packages that the terms name."""

    def run(
        self,
        terms: list[str],
        variables: Mapping[str, Any] | None = None,  # noqa: ARG002 -- Ansible's call
        *,
        home: str,
        **_options: Any,
    ) -> list[dict[str, Any]]:
        """Return the entries of all terms, below ``home``."""
        entries: list[dict[str, Any]] = []
        for package in terms:
            folders = [home, *(f"{home}/{folder}" for folder in host_code.folders(package))]
            entries.append({"dest": folders, "directory": True})
            entries += [
                {"dest": f"{home}/{path}", "content": (ROOT / path).read_text(encoding="utf-8")}
                for path in host_code.modules(package)
            ]
        return entries
