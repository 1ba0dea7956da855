"""What roles take and what they give: argument specifications with the catalogue's tables, and exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakehouse import yamlfile
from lakehouse.model import services
from lakehouse.run import ROOT


def roles() -> list[Path]:
    """Return the folders of all roles of the kit."""
    return sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())


def of(role: Path) -> dict[str, Any]:
    """Return a role's `meta/argument_specs.yml`, with the keys of `lakehouse_ports` and `lakehouse_users`."""
    spec: dict[str, Any] = yamlfile.read(role / "meta" / "argument_specs.yml")
    tables = services.load().options
    for entry_point in spec["argument_specs"].values():
        for name, option in entry_point["options"].items():
            if name in tables:
                option["options"] = tables[name]
    return spec


def every() -> list[dict[str, Any]]:
    """Return the specifications of all roles of the kit."""
    return [of(role) for role in roles()]


def exports(role: Path) -> dict[str, str]:
    """Return what other roles may read of a role, by name: `meta/exports.yml`, empty where there is none."""
    path = role / "meta" / "exports.yml"
    return yamlfile.read(path) if path.is_file() else {}
