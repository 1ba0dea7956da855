"""A query to an engine, and its outcome, for all engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.sql.rows import Rows


@dataclass(frozen=True)
class Query:
    """Statements for an engine: on a host, as a user, with a timeout in seconds."""

    cluster: Cluster
    host: Host
    user: str
    statements: Sequence[str] = ()
    limit: float = 0.0

    def account(self, key: str) -> str:
        """Return an account of the inventory by its key in `lakehouse_users`."""
        return str(self.cluster.variable("lakehouse_users")[key])


@dataclass(frozen=True)
class Outcome:
    """The results up to the first failed statement, and the engine's error message as one line."""

    results: tuple[Rows, ...]
    complaint: str = ""
    # Without an answer the state of the statement is unknown.
    silent: bool = False
    # Ended by the timeout.
    late: bool = False
