"""What only the findings of all machines together tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse.validation import identity


def doubled_datanodes(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Lines about DataNodes that are one and the same, from the result of ``lakehouse_preflight`` by host."""
    return list(map(str, identity.doubled({host: of.get("datanodes", []) for host, of in results.items()})))


class FilterModule:
    """What playbooks may use."""

    def filters(self) -> dict[str, Any]:
        """Name to function."""
        return {"doubled_datanodes": doubled_datanodes}
