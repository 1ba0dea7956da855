"""Filters of the catalogue of services (services.yml): hosts of services, and their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]


def _groups(catalogue: Row, profile: str) -> set[str]:
    """Groups whose services run in a profile."""
    return {
        name
        for name, group in catalogue["groups"].items()
        if profile == "full" or group["profile"] == profile
    }


def placed(catalogue: Row, host_groups: Collection[str], profile: str) -> list[dict[str, Any]]:
    """Return the services of a host of the groups ``host_groups``, in the order of the catalogue.

    Each has ``unit`` (a pattern, with ``.service``), ``instance`` (the value of its star), ``role``,
    ``ports`` (names), ``memory`` (names of variables) and, where it keeps data, ``storage``.
    """
    groups = _groups(catalogue, profile).intersection(host_groups)
    return [
        {
            "unit": f"{row['unit']}.service",
            "instance": row.get("instance", ""),
            "role": row["role"],
            "ports": list(row.get("listeners", ())),
            "memory": list(row.get("memory", ())),
            **({"storage": row["storage"]} if "storage" in row else {}),
        }
        for row in catalogue["services"].values()
        if groups.intersection(row["groups"]) and row.get("enabled", True)
    ]


def hosts_of(catalogue: Row, role: str, groups: Mapping[str, Iterable[str]], profile: str) -> list[str]:
    """Return the hosts that run a role: none if the profile excludes it, or its first group is empty."""
    rows = [row for row in catalogue["services"].values() if row["role"] == role]
    profile_groups = _groups(catalogue, profile)
    names = [group for row in rows for group in row["groups"] if group in profile_groups]
    if not names or not groups.get(names[0]):
        return []
    return list(dict.fromkeys(host for name in names for host in groups.get(name, ())))


def units(catalogue: Row) -> dict[str, str]:
    """Return every service's unit by the service's name, without ``.service``."""
    return {
        name: row["unit"].replace("*", row.get("instance", "")) for name, row in catalogue["services"].items()
    }


class FilterModule:
    """What playbooks may use."""

    def filters(self) -> dict[str, Any]:
        """Name to function."""
        return {
            "hosts_of": hosts_of,
            "placed": placed,
            "service_units": units,
        }
