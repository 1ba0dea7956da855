"""Does an engine answer? A query on a table of the kit, where that is there."""

from __future__ import annotations

from dataclasses import dataclass

from lakehouse import services
from ops.change.result import Ending, Stopped
from ops.sql.engines import ENGINES
from ops.sql.query import Query
from ops.status.placement import Cluster

_COUNT, _LEAST = "SELECT count(*) FROM iceberg.nycflights.airlines", "SELECT 1"
_SECONDS = 180.0


@dataclass(frozen=True)
class Proof:
    """A statement for an engine, what it said before anything was changed, and what was wrong then."""

    engine: str
    statement: str
    before: str
    complaint: str = ""

    def again(self, cluster: Cluster) -> str:
        """Ask once more, and return what is seen; Stopped where the engine does not answer any more."""
        complaint, now = asked(cluster, self.engine, self.statement)
        if complaint:
            raise Stopped(Ending.HALFWAY, f"{self.engine}: {self.statement}: {complaint}", "")
        return f"{self.statement} gives {now}" + ("" if now == self.before else f" ({self.before} before)")


def made(cluster: Cluster, component: str) -> Proof | None:
    """Return a statement that is answered now, on a table if there is one; None where nothing is asked."""
    release = services.load().releases.get(component)
    if release is None:
        return None
    engine = release.proof
    complaint = ""
    for statement in (_COUNT, _LEAST):
        complaint, before = asked(cluster, engine, statement)
        if not complaint:
            return Proof(engine, statement, before)
    return Proof(engine, _LEAST, "", f"{engine} does not answer before anything is changed: {complaint}")


def asked(cluster: Cluster, engine: str, statement: str) -> tuple[str, str]:
    """Return what is wrong, and the first value that came back."""
    row = ENGINES[engine]
    hosts = cluster.inventory.group(row.group) if engine == "spark" else cluster.running(row.group)
    if not hosts:
        return f"no host runs {engine}", ""
    person = str(cluster.variable("lakehouse_users")[row.user])
    found = row.ask(Query(cluster, hosts[0], person, (statement,), _SECONDS))
    values = [str(value) for rows in found.results for line in rows.rows for value in line]
    return found.complaint, next(iter(values), "")
