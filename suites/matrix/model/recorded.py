"""Sequences as data: those that a run has found are recorded, and replayed in later runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from suites.matrix.model.state import KINDS, Column, Condition
from suites.matrix.model.steps import FIND, Sequence, Step

PATH = Path(__file__).with_name("examples.yml")


@dataclass(frozen=True)
class Example:
    """A recorded sequence: what it shows, where it comes from, and the fixes without which it diverges.

    `without` names fixes of `suites/matrix/model/fixes.py`, each of which alone is enough; `seed` is that of
    the run which has found it, 0 for one that was written down by hand.
    """

    name: str
    sequence: Sequence
    seed: int = 0
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def load(path: Path = PATH) -> tuple[Example, ...]:
    """Return the recorded sequences."""
    return tuple(map(_example, yaml.safe_load(path.read_text(encoding="utf-8"))))


def dump(examples: Iterable[Example]) -> str:
    """Return examples as YAML."""
    return "".join(f"- {_text(example)}" for example in examples)


def words(sequence: Sequence) -> list[dict[str, Any]]:
    """Return a sequence as data of YAML."""
    return [_words(step) for step in sequence]


def steps(data: Iterable[Mapping[str, Any]]) -> Sequence:
    """Return the sequence that `words` has made."""
    return tuple(map(_step, data))


def _example(data: Mapping[str, Any]) -> Example:
    return Example(
        name=data["name"],
        sequence=steps(data["steps"]),
        seed=data.get("seed", 0),
        without=tuple(data.get("without", ())),
    )


def _text(example: Example) -> str:
    head: dict[str, Any] = {"name": example.name}
    if example.seed:
        head["seed"] = example.seed
    if example.without:
        head["without"] = list(example.without)
    lines = [f"{key}: {_flow(value)}" for key, value in head.items()]
    lines += ["steps:", *(f"  - {_flow(step)}" for step in words(example.sequence))]
    return "\n  ".join(lines) + "\n"


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return str(text).removesuffix("\n").removesuffix("\n...")


def _words(step: Step) -> dict[str, Any]:
    data: dict[str, Any] = {"do": step.action}
    if step.action != FIND:
        data["by"] = step.engine
    data["table"] = step.table
    for name in ("format", "partition", "column", "to"):
        if text := getattr(step, name):
            data[name] = text
    if step.columns:
        data["columns"] = {column.name: column.kind.name for column in step.columns}
    if step.rows:
        data["rows"] = [list(row) for row in step.rows]
    if step.action == "update":
        data["value"] = step.value
    if condition := step.condition:
        data["where"] = [condition.column, condition.operator, condition.value]
    return data


def _step(data: Mapping[str, Any]) -> Step:
    return Step(
        action=data["do"],
        engine=data.get("by", ""),
        table=data["table"],
        format=data.get("format", ""),
        columns=tuple(Column(name, KINDS[kind]) for name, kind in data.get("columns", {}).items()),
        partition=data.get("partition", ""),
        rows=tuple(map(tuple, data.get("rows", ()))),
        column=data.get("column", ""),
        to=data.get("to", ""),
        value=data.get("value"),
        condition=Condition(*data["where"]) if "where" in data else None,
    )
