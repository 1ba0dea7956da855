"""What holds where an inventory says nothing: the defaults of the role `lakehouse`, and of the catalogue.

An inventory says its differences alone. A variable of its own replaces the default, except in the three
tables, where each entry does so by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ansible.parsing.dataloader import DataLoader

from lakehouse import services
from lakehouse.run import ROOT

FILE = ROOT / "roles" / "lakehouse" / "defaults" / "main.yml"
TABLES = ("lakehouse_database", "lakehouse_ports", "lakehouse_users")


@cache
def defaults() -> Mapping[str, Any]:
    """Return the defaults by name; templates in them are not evaluated yet."""
    own: dict[str, Any] = DataLoader().load_from_file(str(FILE), trusted_as_template=True)
    return {**own, **services.load().tables}


def completed(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a host's raw variables what its inventory leaves unsaid."""
    return {**defaults(), **{name: table(name, value) for name, value in variables.items()}}


def table(name: str, value: Any) -> Any:
    """Return the value of a variable, completed if it is one of the tables.

    One that is still a template comes back as it is: its value is what there is to complete.
    """
    if name in TABLES and isinstance(value, Mapping):
        return {**defaults()[name], **value}
    return value
