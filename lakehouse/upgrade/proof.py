"""Check an engine with a query, on a table of the kit if it exists."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse.model import services
from lakehouse.model.placement import Cluster
from lakehouse.rolling.result import Ending, Stopped
from lakehouse.sql.engines import ENGINES
from lakehouse.sql.query import Query

_COUNT, _LEAST = "SELECT count(*) FROM iceberg.nycflights.airlines", "SELECT 1"
_SECONDS = 180.0


@dataclass(frozen=True)
class Proof:
    """A statement for an engine, with its result or complaint before any change."""

    engine: str
    statement: str
    before: str
    complaint: str = ""

    def repeat(self, cluster: Cluster) -> str:
        """Run the statement again, and return its result as text; Stopped where it fails."""
        complaint, current = run_statement(cluster, self.engine, self.statement)
        if complaint:
            raise Stopped(Ending.HALFWAY, f"{self.engine}: {self.statement}: {complaint}", "")
        return f"{self.statement} gives {current}" + (
            "" if current == self.before else f" ({self.before} before)"
        )


def find(cluster: Cluster, component: str) -> Proof | None:
    """Return a statement that succeeds, on a table if it exists; None for a component without an engine."""
    release = services.load().releases.get(component)
    if release is None:
        return None
    engine = release.proof
    complaint = ""
    for statement in (_COUNT, _LEAST):
        complaint, before = run_statement(cluster, engine, statement)
        if not complaint:
            return Proof(engine, statement, before)
    return Proof(engine, _LEAST, "", f"{engine} does not answer before anything is changed: {complaint}")


def run_statement(cluster: Cluster, engine: str, statement: str) -> tuple[str, str]:
    """Return the complaint, and the first value of the result."""
    row = ENGINES[engine]
    hosts = cluster.inventory.group(row.group) if engine == "spark" else cluster.running(row.group)
    if not hosts:
        return f"no host runs {engine}", ""
    user = str(cluster.variable("lakehouse_users")[row.user])
    outcome = row.ask(Query(cluster, hosts[0], user, (statement,), _SECONDS))
    values = [
        str(value) for rows in outcome.results for values_of_row in rows.rows for value in values_of_row
    ]
    return outcome.complaint, next(iter(values), "")
