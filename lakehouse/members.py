"""Numbers of the hosts of a service, such as a quorum has: each is one host's for ever. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.services import Service

# The host variable: numbers by service.
VARIABLE = "lakehouse_member_numbers"


def number(service: Service, host: str, variables: Mapping[str, Any]) -> int:
    """Return the number of a host of a service: what its variables say, else one derived from its name.

    It depends on no other host and no order, so that it stays when hosts come and go. Two names may have the
    same; validation refuses that. Raises LakehouseError where the row has no numbers.
    """
    if service.numbers is None:
        raise LakehouseError(
            f"services.yml gives the hosts of {service.name} no numbers",
            "add numbers to its row, as in numbers: {least: 1, most: 255}, or use the host's name",
        )
    given = variables.get(VARIABLE) or {}
    if service.name in given:
        return int(given[service.name])
    span = service.numbers.most - service.numbers.least + 1
    return service.numbers.least + zlib.crc32(host.encode()) % span
