"""Policies: what tables get, by a pattern of their names; the first that matches counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

# A writer may have files that no commit has yet: none takes longer (org.apache.iceberg.spark refuses a day).
LEAST_ORPHAN_DAYS = 3
# Of each number: none above makes sense, and days of more overflow a timestamp.
_MOST = 36_500
_MOST_FILE_MB = 4096
_PATTERN = re.compile(r"[^.`'\"\\\s]+\.[^.`'\"\\\s]+")
_COLUMN = re.compile(r"[^`'\"\\(),\s]+")


class PolicyError(ValueError):
    """A policy has a value that no run can use: which one, and what is allowed."""


@dataclass(frozen=True)
class Policy:
    """What tables get whose name matches `tables`, such as `sales.*`."""

    tables: str = "*.*"
    # Size of data files after a compaction, and the columns by which rows are sorted then.
    file_mb: int = 256
    sort: tuple[str, ...] = ()
    zorder: tuple[str, ...] = ()
    # Snapshots of an Iceberg table stay that are younger, and so many in any case.
    snapshots: int = 20
    age_days: int = 5
    # Files without a commit are removed after so many days.
    orphan_days: int = 7
    statistics: bool = True
    # No action on these tables begins after so many minutes of actions on them in a run; 0 is no limit.
    minutes: int = 0

    @property
    def file_bytes(self) -> int:
        """The size of data files after a compaction."""
        return self.file_mb << 20

    def matches(self, database: str, table: str) -> bool:
        """Return whether the policy is for a table."""
        return matches(self.tables, database, table)


_LEAST = {"file_mb": 1, "snapshots": 1, "age_days": 1, "orphan_days": LEAST_ORPHAN_DAYS, "minutes": 0}
_NAMES = tuple(field.name for field in fields(Policy))
_COLUMNS = ("sort", "zorder")


def faults(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a policy as an inventory has it, and what is allowed."""
    for name in document:
        if name not in _NAMES:
            yield f"{name} is no setting of a policy: {', '.join(_NAMES)}"
    pattern = document.get("tables")
    if not isinstance(pattern, str) or not is_pattern(pattern):
        yield f"tables is {str(pattern)[:100]!r}; a pattern such as sales.orders, sales.* or *.*"
    for name, least in _LEAST.items():
        value, most = document.get(name), _MOST_FILE_MB if name == "file_mb" else _MOST
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (is_number and least <= value <= most):
            yield f"{name} is {str(value)[:100]}; {least} to {most}"
    for name in _COLUMNS:
        columns = document.get(name) or ()
        if isinstance(columns, str) or not all(_COLUMN.fullmatch(str(column)) for column in columns):
            yield f"{name} is {str(columns)[:100]}; a list of names of columns"
    if document.get("sort") and document.get("zorder"):
        yield "it has sort and zorder; one of them"
    if not isinstance(document.get("statistics"), bool | None):
        yield f"statistics is {str(document['statistics'])[:100]}; true or false"


def parse(documents: Sequence[Mapping[str, Any]]) -> list[Policy]:
    """Return policies from an inventory, in order; PolicyError for the first invalid one."""
    policies = []
    for number, document in enumerate(documents, 1):
        if not isinstance(document, dict):
            raise PolicyError(f"policy {number} is no mapping")
        values = {name: value for name, value in document.items() if value is not None}
        if fault := next(faults(values), None):
            raise PolicyError(f"policy {number}: {fault}")
        columns = {name: tuple(values[name]) for name in _COLUMNS if name in values}
        policies.append(Policy(**{**values, **columns}))
    return policies


def is_pattern(text: str) -> bool:
    """Return whether a text is a pattern of tables, such as `sales.*`: `*` is any text."""
    return _PATTERN.fullmatch(text) is not None


def matches(pattern: str, database: str, table: str) -> bool:
    """Return whether a pattern is for a table."""
    parts = (".*".join(map(re.escape, part.split("*"))) for part in pattern.split(".", 1))
    return all(re.fullmatch(part, name) for part, name in zip(parts, (database, table), strict=True))


def assign(
    policies: Sequence[Policy], tables: Iterable[tuple[str, str]]
) -> tuple[dict[tuple[str, str], Policy], list[str]]:
    """Return the policy of each table that has one, and a line for each policy that counts for none."""
    names, assigned, lines = list(tables), dict[tuple[str, str], Policy](), list[str]()
    for number, policy in enumerate(policies, 1):
        matching = [name for name in names if policy.matches(*name)]
        free = [name for name in matching if name not in assigned]
        assigned |= dict.fromkeys(free, policy)
        if not matching:
            lines.append(f"policy {number}, {policy.tables}: it matches no table")
        elif not free:
            first = ".".join(matching[0])
            lines.append(
                f"policy {number}, {policy.tables}: an earlier one contradicts it for each table,"
                f" {assigned[matching[0]].tables} for {first}"
            )
    return assigned, lines
