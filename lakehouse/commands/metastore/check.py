import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from lakehouse import clients, commands, shared_options
from lakehouse.errors import LakehouseError
from lakehouse.maybe import Answer, unknown
from lakehouse.metastore.health import Health, Step, check
from lakehouse.model import defaults, placement
from lakehouse.model import inventory as inventories
from lakehouse.model.placement import Cluster
from lakehouse.next_command import command as next_command
from lakehouse.outcome import Finding, Outcome, Result
from lakehouse.remote import hosts, output
from lakehouse.remote.probing import Http, Prober, Question, Reply, Shell
from lakehouse.status import questions
from lakehouse.status.screen import aligned
from lakehouse.terminal import printable
from plugins.module_utils.lakehouse.counting import counted

_VERB = "metastore check"
# For the addresses, then for the database and HDFS.
_SECONDS, _MORE_SECONDS = 5.0, 5.0
_SCHEMA, _WAREHOUSE = "schema", "warehouse"
_SQL = """SELECT string_agg("SCHEMA_VERSION", ',') FROM "VERSION" """
_WHAT = {
    Step.TCP: "it takes no connection",
    Step.THRIFT: "it does not answer by Thrift",
    Step.DATABASE: "it cannot say which databases there are",
}


@dataclass(frozen=True)
class Seen:
    """What was answered of a cluster's metastore."""

    cluster: str
    inventory: str
    healths: tuple[Health, ...]
    # On which host the metastore's database is, and the version of the schema in it.
    database: str
    schema: Answer[str]
    expected: str
    # Where new tables go, as the metastore says, and whether its user may make files there.
    warehouse: str
    writable: Answer[str]

    @property
    def well(self) -> int:
        """How many addresses have answered everything."""
        return sum(not health.failed for health in self.healths)


@commands.command(failure=commands.NOT_KNOWN)
@shared_options.as_json
@shared_options.inventory
def command(as_json: bool, inventory: str) -> int:
    """Check each address of the metastore, its database, and its warehouse in HDFS.

    Exit code: 1 for a fault, 2 if no address answers.
    """
    began = time.monotonic()
    with closing(Prober()) as prober:
        metastore = _look(prober, placement.read(inventories.load(inventory)))
    if not as_json:
        for line in table(metastore.healths):
            sys.stdout.write(f"{printable(line)}\n")
        sys.stdout.flush()
    return output.end(result(metastore, time.monotonic() - began), as_json=as_json)


def _look(prober: Prober, cluster: Cluster) -> Seen:
    path = str(cluster.inventory.path)
    endpoints = clients.metastores(cluster)
    if not endpoints:
        raise LakehouseError("no host runs the metastore", next_command("status", path))
    healths = check(endpoints, seconds=_SECONDS)
    warehouse = next((health.warehouse for health in healths if health.warehouse), "")
    [keeper, *_] = cluster.running("postgresql")
    asking: list[Question] = [Shell(_SCHEMA, keeper.name, questions.psql(keeper, _SQL))]
    asking += _of_warehouse(cluster, warehouse)
    answers = prober.ask({keeper.name: hosts.connection(keeper)}, asking, time.monotonic() + _MORE_SECONDS)
    none: Answer[Reply] = unknown("no address says where it is")
    return Seen(
        cluster=str(cluster.variable("lakehouse_cluster")),
        inventory=path,
        healths=healths,
        database=keeper.name,
        schema=answers[_SCHEMA].then(lambda reply: reply.text.strip()),
        expected=str(defaults.role("hive_metastore")["hive_metastore_schema_version"]),
        warehouse=warehouse,
        writable=answers.get(_WAREHOUSE, none).then(lambda reply: reply.text),
    )


def _of_warehouse(cluster: Cluster, warehouse: str) -> Iterator[Question]:
    """Ask HDFS whether the metastore's user may make something there."""
    try:
        place = urlsplit(warehouse)
    except ValueError:
        return
    if place.scheme == "hdfs" and (namenode := cluster.endpoint("namenode_http")):
        user = cluster.variable("lakehouse_users")["hive"]
        query = f"op=CHECKACCESS&fsaction=-wx&user.name={user}"
        yield Http(_WAREHOUSE, f"{namenode.uri}/webhdfs/v1{quote(place.path)}?{query}", headers={})


def findings(observation: Seen) -> Iterator[Finding]:
    """Give every fault, causes before effects: without PostgreSQL no address answers."""
    logs = f".venv/bin/lakehouse logs {{}} -i {observation.inventory}"
    if not observation.schema.known:
        # If an address has answered from it, only the connection to its host is at fault.
        outcome = Outcome.DEGRADED if observation.well else Outcome.DOWN
        fact = f"PostgreSQL does not answer: {observation.schema.why}"
        yield Finding("metastore.database", outcome, observation.database, fact, logs.format("postgresql"))
    elif observation.schema.value != observation.expected:
        fact = (
            f"the schema has version {observation.schema.value or 'none'} (expected {observation.expected})"
        )
        yield Finding(
            "metastore.schema", Outcome.DEGRADED, observation.database, fact, logs.format("metastore")
        )
    for health in observation.healths:
        if failed := health.failed:
            outcome = Outcome.DEGRADED if observation.well else Outcome.DOWN
            fact = f"{_WHAT[failed]}: {health.why}"
            yield Finding(
                f"metastore.{failed}", outcome, str(health.endpoint), fact, logs.format("metastore")
            )
    if observation.warehouse and not observation.writable.known:
        fact = f"nothing can be made there by the metastore: {observation.writable.why}"
        yield Finding(
            "metastore.warehouse", Outcome.DEGRADED, observation.warehouse, fact, logs.format("namenode")
        )


def result(observation: Seen, seconds: float) -> Result:
    """Return the result of the verb."""
    addresses = counted(len(observation.healths), "address answers", "addresses answer")
    return Result(
        verb=_VERB,
        target=observation.cluster,
        findings=tuple(findings(observation)),
        facts=(
            f"{observation.well} of {addresses}",
            f"schema {observation.schema.value or 'unknown'}",
            f"{seconds:.1f} s",
        ),
        hosts={},
        healthy_next=next_command("status", observation.inventory),
        details={
            "endpoints": [_json(health) for health in observation.healths],
            "schema": observation.schema.value,
            "warehouse": {"location": observation.warehouse or None, "writable": observation.writable.known},
            "seconds": round(seconds, 1),
        },
    )


def table(healths: Sequence[Health]) -> list[str]:
    """Return a line for each address: the milliseconds of each step, and what it says of itself."""
    rows = [("ADDRESS", *(step.upper() for step in Step), "DATABASES", "VERSION")]
    for health in healths:
        steps = (f"{health.steps[step]:.1f} ms" if step in health.steps else "-" for step in Step)
        count = "-" if health.databases is None else str(health.databases)
        rows.append((str(health.endpoint), *steps, count, health.version or "-"))
    return aligned(rows)


def _json(health: Health) -> Mapping[str, Any]:
    return {
        "endpoint": str(health.endpoint),
        "milliseconds": {step.value: spent for step, spent in health.steps.items()},
        "failed": health.failed,
        "why": health.why,
        "databases": health.databases,
        "version": health.version,
        "warehouse": health.warehouse,
    }
