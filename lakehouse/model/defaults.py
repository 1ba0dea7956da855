"""What holds where an inventory says nothing: the defaults of the role `lakehouse`, and of the catalogue.

And what any role says itself, so that no other code has to repeat it.

An inventory says its differences alone. A variable of its own replaces the default, except in the three
tables, where each entry does so by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ansible.parsing.dataloader import DataLoader

from lakehouse.model import services
from lakehouse.run import ROOT

TABLES = ("lakehouse_database", "lakehouse_ports", "lakehouse_users")


@cache
def defaults() -> Mapping[str, Any]:
    """Return the defaults by name; templates in them are not evaluated yet."""
    return {**_read("lakehouse", "defaults"), **services.load().tables}


@cache
def role(name: str) -> Mapping[str, Any]:
    """Return a role's defaults and its own values by name; templates in them are not evaluated."""
    return {**_read(name, "defaults"), **_read(name, "vars")}


def _read(name: str, part: str) -> dict[str, Any]:
    loader = DataLoader()
    files = sorted((ROOT / "roles" / name / part).rglob("*.yml"))
    return {
        variable: value
        for file in files
        for variable, value in loader.load_from_file(str(file), trusted_as_template=True).items()
    }


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
