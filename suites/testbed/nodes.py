"""The machines of the cluster: units, what they logged, programs and SQL on them, whatever their kind."""

from __future__ import annotations

import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple


class CommandError(Exception):
    """A command on a machine ended with another status than 0: where, what, and its last words."""


class Ended(NamedTuple):
    """How a program ended: its status and what it printed."""

    status: int
    output: str
    error: str


class Nodes(ABC):
    """What the tests do to machines; each kind of machine has its own way. A failure is a CommandError.

    A host of the inventory has one or more places for programs: itself, or each container that plays it.
    """

    @abstractmethod
    def places(self, host: str) -> Sequence[str]:
        """Return the names of a host's places, at least one."""

    @abstractmethod
    def execute(self, place: str, argv: Sequence[str], user: str, environment: Mapping[str, str]) -> Ended:
        """Run a program as `user`."""

    @abstractmethod
    def is_running(self, host: str, unit: str) -> bool:
        """Tell whether the unit is active."""

    @abstractmethod
    def start(self, host: str, unit: str) -> None:
        """Start a unit; it need not answer yet."""

    @abstractmethod
    def stop(self, host: str, unit: str) -> None:
        """Stop a unit and wait until it has ended."""

    @abstractmethod
    def restart(self, host: str, unit: str) -> None:
        """Stop and start a unit; it need not answer yet."""

    @abstractmethod
    def kill(self, host: str, unit: str) -> None:
        """Kill a unit's processes as a crash would: what watches over it starts it again."""

    @abstractmethod
    def journal(self, host: str, unit: str, lines: int = 15) -> str:
        """Return the last lines that the unit logged."""

    def run(
        self,
        host: str,
        *argv: str,
        user: str = "root",
        environment: Mapping[str, str] | None = None,
        seconds: int = 60,
    ) -> str:
        """Run a program, as root or as `user`, for at most `seconds`; return what it prints.

        Raises CommandError when it fails.
        """
        return self._run(self.places(host)[0], argv, user, environment or {}, seconds)

    def run_everywhere(self, host: str, *argv: str) -> list[str]:
        """Run a program as root in every place of a host; return what it prints in each."""
        return [self._run(place, argv, "root", {}, 60) for place in self.places(host)]

    @contextmanager
    def stopped(self, host: str, unit: str) -> Iterator[None]:
        """Keep a unit stopped for the length of the block, whatever happens in it."""
        self.stop(host, unit)
        try:
            yield
        finally:
            self.start(host, unit)

    def select(self, host: str, database: str, role: str, query: str) -> list[dict[str, Any]]:
        """Ask a database of PostgreSQL as a role of it; each row is a dict by column."""
        statement = f"SELECT coalesce(json_agg(row), '[]') FROM ({query}) AS row"
        answer = self.run(host, "psql", "-U", role, "-d", database, "-XAtqc", statement, user="postgres")
        return list(json.loads(answer))

    def _run(
        self, place: str, argv: Sequence[str], user: str, environment: Mapping[str, str], seconds: int
    ) -> str:
        ended = self.execute(place, ["timeout", str(seconds), *argv], user, environment)
        if ended.status != 0:
            words = (ended.error or ended.output)[-1500:]
            raise CommandError(f"{place}: {shlex.join(argv)[:200]}: status {ended.status}: {words}")
        return ended.output
