"""The services of compose/compose.yaml, by profile."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from lakehouse import yamlfile
from lakehouse.local.compose.dotenv import FOLDER
from lakehouse.local.compose.labels import HOST_LABEL

_PORT = re.compile(r"\$\{(\w+_PORT)\b")


@dataclass(frozen=True)
class Service:
    """A service: the image's name without its tag, the limit of memory in MiB, and its ports.

    `ports` are the variables of published ports; `exposed` are fixed numbers inside the container.
    """

    name: str
    image: str
    memory_mb: int
    ports: frozenset[str]
    exposed: frozenset[int]


def chosen(profiles: Collection[str]) -> tuple[Service, ...]:
    """Return the services of these profiles."""
    services = yamlfile.read(FOLDER / "compose.yaml")["services"]
    return tuple(
        Service(
            name,
            service["image"].partition(":")[0],
            int(service["mem_limit"].removesuffix("m")),
            frozenset(variable for port in service.get("ports", []) for variable in _PORT.findall(port)),
            frozenset(map(int, service.get("expose", []))),
        )
        for name, service in services.items()
        if HOST_LABEL in service.get("labels", {}) and set(service["profiles"]) & set(profiles)
    )


def memory_mb(profiles: Collection[str]) -> int:
    """Return the sum of the limits in MiB."""
    return sum(service.memory_mb for service in chosen(profiles))
