"""Permanent numbers of the hosts of a service, such as the members of a quorum. Pure functions."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.model.services import Service

# The host variable: numbers by service.
VARIABLE = "lakehouse_member_numbers"


def number(service: Service, host: str, variables: Mapping[str, Any]) -> int:
    """Return the number of a host of a service: from its variables, else derived from its name.

    It depends neither on other hosts nor on their order, so it stays when hosts join and leave. Two names may
    have the same number, which validation refuses. Raises LakehouseError where the row has no numbers.
    """
    if service.numbers is None:
        raise LakehouseError(
            f"services.yml gives the hosts of {service.name} no numbers",
            "add numbers to its row, as in numbers: {least: 1, most: 255}, or use the host's name",
        )
    numbers = variables.get(VARIABLE) or {}
    if service.name in numbers:
        return int(numbers[service.name])
    span = service.numbers.most - service.numbers.least + 1
    return service.numbers.least + zlib.crc32(host.encode()) % span
