"""Spark as the census uses it: datasets that evaluate again for each action, and a table of units."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from lakehouse.census import changes, filters
from lakehouse.census.model import COLUMNS, KEYS


@dataclass
class FakeRdd:
    """A dataset: an action evaluates it again, unless an earlier one has written a local checkpoint."""

    evaluate: Callable[[], Iterable[Any]]
    is_marked: bool = False
    rows: list[Any] | None = None

    def mapPartitions(self, function: Callable[[Iterable[Any]], Iterable[Any]]) -> FakeRdd:  # noqa: N802
        return FakeRdd(lambda: function(iter(self._rows())))

    def map(self, function: Callable[[Any], Any]) -> FakeRdd:
        return FakeRdd(lambda: map(function, self._rows()))

    def flatMap(self, function: Callable[[Any], Iterable[Any]]) -> FakeRdd:  # noqa: N802
        return FakeRdd(lambda: [item for row in self._rows() for item in function(row)])

    def union(self, other: FakeRdd) -> FakeRdd:
        return FakeRdd(lambda: [*self._rows(), *other._rows()])

    def persist(self, _: Any) -> FakeRdd:
        return self

    def unpersist(self) -> None:
        """Keep the rows."""

    def localCheckpoint(self) -> None:  # noqa: N802
        self.is_marked = True

    def count(self) -> int:
        return len(self.collect())

    def collect(self) -> list[Any]:
        rows = self._rows()
        if self.is_marked:
            self.rows = rows
        return rows

    def _rows(self) -> list[Any]:
        return list(self.evaluate()) if self.rows is None else self.rows


@dataclass
class FakeSpark:
    """A session: `checkpoint` returns the actions of a checkpoint by its files, or raises."""

    checkpoint: Callable[..., list[Mapping[str, Any]]] = lambda *_: []

    def __post_init__(self) -> None:
        """Have the context and the reader of a session."""
        self.sparkContext = SimpleNamespace(
            defaultParallelism=1,
            parallelize=lambda rows, *_: FakeRdd(lambda: rows),
            union=lambda parts: FakeRdd(lambda: [row for part in parts for row in part._rows()]),
            broadcast=lambda value: SimpleNamespace(value=value),
        )
        self.read = SimpleNamespace(parquet=self._frame)

    def createDataFrame(self, rows: FakeRdd, *_: Any, **__: Any) -> FakeRdd:  # noqa: N802
        return rows

    def _frame(self, *paths: str) -> Any:
        actions = FakeRdd(
            lambda: [SimpleNamespace(action=json.dumps(row)) for row in self.checkpoint(*paths)]
        )
        frame = SimpleNamespace(rdd=actions, collect=actions.collect)
        for name in ("where", "selectExpr", "limit", "coalesce"):
            setattr(frame, name, lambda *_: frame)
        return frame


@dataclass
class FakeStore:
    """A table of units in memory."""

    rows: list[Mapping[str, Any]] = field(default_factory=list)
    commits: int = 0
    keys: frozenset[Any] = frozenset()

    def create(self) -> None:
        """Have a table."""

    def version(self) -> int:
        return self.commits

    def read(self, types: Any, _: Sequence[str], where: Any = None) -> list[Mapping[str, Any]]:
        return list(self._of(types, where))

    def _of(self, types: Any, where: Any) -> Iterator[Mapping[str, Any]]:
        for row in self.rows:
            if row["metadata_type"] in types and (where is None or filters.matches(where, row)):
                yield row

    def modify(self) -> FakeStore:
        return self

    def delete(self, where: Any, _: Any) -> None:
        self.rows = [row for row in self.rows if not filters.matches(where, row)]

    def overwrite_frame(self, frame: FakeRdd, keys: frozenset[Any]) -> None:
        self.keys = keys
        self.rows = [row for row in self.rows if tuple(row[name] for name in KEYS) not in keys]
        self.rows += [dict(zip(COLUMNS, row, strict=True)) for row in frame.collect()]

    def execute(self) -> None:
        self.commits += 1

    def digests(self) -> dict[Any, str]:
        return changes.digests(row for row in self.rows if row["metadata_type"] in {"TABLE", "SEGMENT"})
