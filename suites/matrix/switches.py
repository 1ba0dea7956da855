"""What the kit keeps an engine from doing, and where the engine can be asked without it: data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suites.testbed.formats import DELTA, Format


@dataclass(frozen=True)
class Switch:
    """A setting of the kit by which an engine refuses what it might do.

    `setting` is its name and value, `why` the kit has it. `format` is the same format through `catalog`,
    which lacks the setting; a cluster has that catalog for tests alone, or not at all.
    """

    setting: str
    why: str
    catalog: str
    format: Format


_TRINO_DELTA = "delta_allow_all"

SWITCHES: Mapping[tuple[str, Format], Switch] = {
    ("trino", DELTA): Switch(
        setting="delta.security: READ_ONLY",
        why="on hdfs:// Trino refuses most changes of a Delta table late or half done",
        catalog=_TRINO_DELTA,
        format=replace(DELTA, catalogs={**DELTA.catalogs, "trino": _TRINO_DELTA}, prefix="behind"),
    ),
}


def of(engine: str, fmt: Format) -> Switch | None:
    """Return what the kit withholds of an engine and a format; None if that is nothing."""
    return SWITCHES.get((engine, fmt))
