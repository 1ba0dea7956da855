"""What every client of a metastore offers, whatever stands between it and the metastore."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from lakehouse.metastore.errors import IncompleteError


@dataclass(frozen=True)
class Stale:
    """Which older answers a caller takes where no fresh one is to be had.

    One that a cache has kept for up to `age_s` seconds, and with `secondary` also one of a metastore that
    may lag behind.
    """

    age_s: float = 0.0
    secondary: bool = False


@dataclass(frozen=True)
class Reply:
    """An answer, and how far it is to be trusted.

    A metastore gave it `age_s` seconds ago. With `stale_possible` there may be a younger one: `why` says what
    kept the client from it.
    """

    value: Any
    age_s: float = 0.0
    stale_possible: bool = False
    why: str = ""


class Client(Protocol):
    """The calls of a metastore. `Metastore` makes them; `Cached` and `Pair` stand before others of this kind.

    Types are those of the bindings (`hive_metastore.ttypes`).
    """

    @abstractmethod
    def call(
        self,
        method: str,
        *arguments: Any,
        seconds: float | None = None,
        applied: Callable[[], bool] | None = None,
    ) -> Any:
        """Call a method of the bindings; return its answer, none older than agreed, within `seconds`.

        With 0 of them DeadlineError is raised, and nothing sent; without, the client's own number counts.
        """

    @abstractmethod
    def ask(
        self, method: str, *arguments: Any, seconds: float | None = None, stale: Stale | None = None
    ) -> Reply:
        """Call a method that changes nothing; return also how old its answer is.

        Only with `stale` may it be an older one than `call` would return, and only where the metastore
        gives none: then it is `stale_possible`.
        """

    @abstractmethod
    def known_partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> dict[str, Any]:
        """Return the partitions that there are, by their names, in the order of the names.

        Many are several requests, which share `seconds`.
        """

    @abstractmethod
    def close(self) -> None:
        """End what it has begun: threads, and connections, those in use as soon as they are not."""

    def partitions(
        self, database: str, table: str, names: Sequence[str], *, seconds: float | None = None
    ) -> list[Any]:
        """Return partitions in the order of their names. Many are several requests, which share `seconds`.

        Raises IncompleteError with the first name that the metastore does not know.
        """
        known = self.known_partitions(database, table, names, seconds=seconds)
        for name in names:
            if name not in known:
                raise IncompleteError(f"{database}.{table} has no partition {name}")
        return [known[name] for name in names]

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return list(self.call("get_all_databases"))

    def tables(self, database: str) -> list[str]:
        """Return the names of all tables and views of a database; their partitions are not asked for."""
        return list(self.call("get_all_tables", database))

    def database(self, name: str) -> Any:
        """Return a database; NoSuchObjectException where there is none."""
        return self.call("get_database", name)

    def table(self, database: str, name: str) -> Any:
        """Return a table or a view; NoSuchObjectException where there is none."""
        return self.call("get_table", database, name)

    def partition_names(self, database: str, table: str) -> list[str]:
        """Return the names of all partitions of a table, such as `day=2026-01-01`, however many there are."""
        # -1 is all of them: a number here has 16 bits, and a table may have more partitions.
        return list(self.call("get_partition_names", database, table, -1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
