"""The argument specifications of all roles, with the ports and users of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lakehouse import services
from lakehouse.run import ROOT


def of(role: Path) -> dict[str, Any]:
    """Return a role's `meta/argument_specs.yml`, with the keys of `lakehouse_ports` and `lakehouse_users`."""
    spec: dict[str, Any] = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    tables = services.load().options
    for entry_point in spec["argument_specs"].values():
        for name, option in entry_point["options"].items():
            if name in tables:
                option["options"] = tables[name]
    return spec


def every() -> list[dict[str, Any]]:
    """Return the specifications of all roles of the kit."""
    return [of(role) for role in sorted((ROOT / "roles").iterdir()) if role.is_dir()]
