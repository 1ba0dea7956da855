"""Known divergences: read from `limits.yml`, and those of single values from the proofs of Hive tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lakehouse.errors import LakehouseError
from suites.matrix.cross.data_types import DAY, INSTANT, LOCAL
from suites.matrix.cross.engines import DELTA_RS, FLINK
from suites.matrix.cross.hive_differences import different
from suites.matrix.model.state import HIVE, NAN, Model, Row, Table, Value
from suites.matrix.model.steps import ENGINES, Step
from suites.testbed.formats import BY_NAME

PATH = Path(__file__).with_name("limits.yml")
_SECTIONS = ("steps", "reads")
_KEYS = frozenset({"actions", "formats", "engines", "when", "refused", "wrong", "limit"})


@dataclass(frozen=True)
class Limit:
    """A known divergence; an empty tuple matches all, an empty `when` every step."""

    actions: tuple[str, ...]
    formats: tuple[str, ...]
    engines: tuple[str, ...]
    when: str
    refused: str
    wrong: str
    limit: str

    def covers(self, engine: str, table: Table) -> bool:
        """Tell whether it is about what an engine does with such a table."""
        return (not self.formats or table.format.name in self.formats) and (
            not self.engines or engine in self.engines
        )


@dataclass(frozen=True)
class Limits:
    """Those of steps, which no sequence holds, and those of readers."""

    steps: tuple[Limit, ...]
    reads: tuple[Limit, ...]

    def forbids(self, step: Step, model: Model) -> bool:
        """Tell whether a step of which the model knows the outcome is known to go wrong."""
        table = model.tables.get(step.table)
        return table is not None and any(
            step.action in limit.actions
            and limit.covers(step.engine, table)
            and (not limit.when or STEPS[limit.when](step, table))
            for limit in self.steps
        )

    def explains(self, reader: str, table: Table, refusal: str) -> bool:
        """Tell whether a reader is known to refuse such a table with these words, or to read it wrongly.

        An empty `refusal` stands for wrong rows.
        """
        return any(
            limit.covers(reader, table)
            and (not limit.when or TABLES[limit.when](table))
            and (bool(re.search(limit.refused, refusal)) if limit.refused else not refusal)
            for limit in self.reads
        )


def reads_otherwise(reader: str, table: Table, row: Row, name: str, value: Value) -> bool:
    """Whether a reader is known to read a value of a Hive table differently, or not to filter by it."""
    if table.format not in HIVE:
        return False
    differences = different(table.format, row.writer, reader)
    if name in table.partitions:
        return ("p", value) in differences
    column = {LOCAL: "moment", DAY: "born"}.get(table.column(name).kind)
    return (column, value) in differences


def _former_name(step: Step, table: Table) -> bool:
    names = {column.name for column in step.columns} | {step.to}
    return bool(names & table.former)


def _first_local_time(step: Step, table: Table) -> bool:
    return LOCAL in {column.kind for column in step.columns} - {column.kind for column in table.columns}


def _far_instants(_: Step, table: Table) -> bool:
    return any(
        column.kind is INSTANT and value and not "1678" <= str(value) < "2262"
        for row in table.rows.values()
        for column, value in zip(table.columns, row.values, strict=True)
    )


def _beyond_ascii(step: Step, table: Table) -> bool:
    return any(
        name in table.partitions and not str(value).isascii()
        for row in step.rows
        for name, value in zip(table.names, row, strict=True)
    )


def _empty_partition(table: Table) -> bool:
    return any(
        name in table.partitions and value == ""
        for row in table.rows.values()
        for name, value in zip(table.names, row.values, strict=True)
    )


def _nan_of_flink(table: Table) -> bool:
    return any(row.writer == FLINK and NAN in row.values for row in table.rows.values())


def _engine_reads_otherwise(step: Step, table: Table) -> bool:
    return any(
        reads_otherwise(step.engine, table, row, name, value)
        for row in table.rows.values()
        for name, value in zip(table.names, row.values, strict=True)
    )


# The words of `when`, for steps and for tables that are read.
STEPS: Mapping[str, Callable[[Step, Table], bool]] = {
    "column mapping": lambda _, table: table.mapped,
    "made by delta-rs": lambda _, table: table.maker == DELTA_RS,
    "name of a former column": _former_name,
    "first column of local time": _first_local_time,
    "far instants": _far_instants,
    "partition beyond ASCII": _beyond_ascii,
    "engine reads values otherwise": _engine_reads_otherwise,
}
TABLES: Mapping[str, Callable[[Table], bool]] = {
    "column mapping": lambda table: table.mapped,
    "empty text as partition": _empty_partition,
    "NaN of Flink": _nan_of_flink,
    "column of days": lambda table: any(column.kind is DAY for column in table.columns),
}


@cache
def load(path: Path = PATH) -> Limits:
    """Read the file; LakehouseError names the entry that is none."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or set(data) != set(_SECTIONS):
        raise _error(path, "must have", " and ".join(_SECTIONS))
    words = {"steps": STEPS, "reads": TABLES}
    steps, reads = (
        tuple(_limit(path, section, entry, words[section]) for entry in data[section])
        for section in _SECTIONS
    )
    return Limits(steps, reads)


def _limit(path: Path, section: str, entry: Mapping[str, Any], words: Iterable[str]) -> Limit:
    where = f"{section}: {entry}"
    if set(entry) - _KEYS:
        raise _error(path, f"{where} has", f"{', '.join(sorted(set(entry) - _KEYS))}")
    if not entry.get("limit") or ("refused" in entry) == ("wrong" in entry):
        raise _error(path, f"{where} lacks", "a limit, or one of refused and wrong")
    if entry.get("when", "") not in {"", *words}:
        raise _error(path, f"{where}: when is none of", ", ".join(words))
    for key, allowed in (("formats", BY_NAME), ("engines", ENGINES)):
        if unknown := set(entry.get(key, ())) - set(allowed):
            raise _error(path, f"{where} has unknown {key}", ", ".join(sorted(unknown)))
    actions, formats, engines = (tuple(entry.get(key, ())) for key in ("actions", "formats", "engines"))
    when, refused, wrong, link = (entry.get(key, "") for key in ("when", "refused", "wrong", "limit"))
    return Limit(actions, formats, engines, when, refused, wrong, link)


def _error(path: Path, subject: str, detail: str) -> LakehouseError:
    return LakehouseError(f"{path.name}: {subject} {detail}", f"edit suites/matrix/model/{path.name}")
