"""What an engine is asked, and how: the same for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse.inventory import Host
from ops.sql.rows import Rows
from ops.status.placement import Cluster


@dataclass(frozen=True)
class Asked:
    """Statements for an engine: on a host, in the name of a person, within so many seconds."""

    cluster: Cluster
    host: Host
    person: str
    statements: Sequence[str] = ()
    limit: float = 0.0

    def user(self, key: str) -> str:
        """Return an account of the inventory by its key in `lakehouse_users`."""
        return str(self.cluster.variable("lakehouse_users")[key])


@dataclass(frozen=True)
class Outcome:
    """What statements returned up to the first that failed, and the engine's one line of that one."""

    results: tuple[Rows, ...]
    complaint: str = ""
    # No answer: nothing is known of the statement.
    silent: bool = False
    # The time was over.
    late: bool = False
