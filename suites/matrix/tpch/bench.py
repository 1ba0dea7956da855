"""TPC-H with the kit's settings against those that Spark and Trino ship, in turn, on one cluster.

    python -m suites.matrix.tpch.bench --rounds 2 --engines spark trino

Tables come from Trino's connector `tpch` at scale factor 1, as Iceberg tables of a database with a random
name, which is dropped at the end. Writes `build/bench/tpch.json`.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakehouse.dev.bench import TPCH, write
from lakehouse.errors import LakehouseError
from lakehouse.interruption import raised, terminated
from lakehouse.run import BUILD
from suites.matrix.tpch import stock
from suites.matrix.tpch.queries import QUERIES, Query
from suites.testbed import endpoints as clusters
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines import EngineError
from suites.testbed.engines.trino import Trino
from suites.testbed.nodes import Nodes
from suites.testbed.transport import reach

SCALE = "1"
TABLES = {
    "customer": "c", "lineitem": "l", "nation": "n", "orders": "o",
    "part": "p", "partsupp": "ps", "region": "r", "supplier": "s",
}  # fmt: skip
# Of the queries' text, which is for scale factor 0.1: Q11's fraction is 0.0001 divided by the scale factor.
SMALL, LARGE = "* 0.001", "* 0.0001"
KIT, STOCK = "kit", "stock"
# One application with all its queries, or one query.
APPLICATION_SECONDS = 3600
FOLDER = "/tmp/bench-tpch"  # noqa: S108 -- on a node, and removed

Times = dict[str, dict[str, list[float]]]
Errors = dict[str, dict[str, str]]


def text(query: Query) -> str:
    """Return the statement for this scale factor."""
    return query.text.replace(SMALL, LARGE)


def columns(described: Sequence[Sequence[Any]], prefix: str) -> str:
    """Return the columns of a CREATE TABLE AS, with the specification's names and types."""
    return ", ".join(
        f"CAST({name} AS DECIMAL(15, 2)) AS {prefix}_{name}"
        if kind == "double"
        else f"{name} AS {prefix}_{name}"
        for name, kind, *_ in described
    )


@contextmanager
def tables(kit: Trino) -> Iterator[str]:
    """Make the eight tables in a database of a random name, and drop it at the end."""
    database = f"bench_{secrets.token_hex(4)}"
    kit.sql(f"CREATE SCHEMA iceberg.{database}")
    try:
        for table, prefix in TABLES.items():
            source = f"tpch.sf{SCALE}.{table}"
            chosen = columns(kit.sql(f"SHOW COLUMNS FROM {source}"), prefix)
            kit.sql(f"CREATE TABLE iceberg.{database}.{table} AS SELECT {chosen} FROM {source}")
        yield database
    finally:
        for table in TABLES:
            kit.sql(f"DROP TABLE IF EXISTS iceberg.{database}.{table}")
        kit.sql(f"DROP SCHEMA iceberg.{database}")


class Spark:
    """Applications of both kinds on the host of the group `clients`, one after the other."""

    def __init__(self, nodes: Nodes, endpoints: Endpoints, queries: Sequence[Query]) -> None:
        self._nodes, self._endpoints, self._queries = nodes, endpoints, queries
        self._host = endpoints.spark.client
        conf = endpoints.spark.conf_dir
        kit = stock.parsed(nodes.run(self._host, "cat", f"{conf}/spark-defaults.conf"))
        self._folders = {KIT: conf, STOCK: f"{FOLDER}/conf"}
        program = Path(__file__).with_name("timed.py").read_text(encoding="utf-8")
        stock.put(nodes, self._host, f"{FOLDER}/timed.py", program)
        stock.put(
            nodes, self._host, f"{FOLDER}/queries.json", json.dumps([(q.name, text(q)) for q in queries])
        )
        defaults = stock.lines(stock.spark_properties(kit))
        stock.put(nodes, self._host, f"{FOLDER}/conf/spark-defaults.conf", defaults)
        nodes.run(self._host, "cp", f"{conf}/spark-env.sh", f"{conf}/log4j2.properties", f"{FOLDER}/conf/")

    def run(self, side: str, database: str) -> Iterator[dict[str, Any]]:
        """Run an application; return its result of each query."""
        spark = self._endpoints.spark
        # spark-env.sh names the kit's folder, so the folder is set after it.
        script = (
            f". {self._folders[side]}/spark-env.sh; export SPARK_CONF_DIR={self._folders[side]};"
            f" exec {spark.home}/bin/spark-submit --properties-file {self._folders[side]}/spark-defaults.conf"
            f" {FOLDER}/timed.py {FOLDER}/queries.json iceberg.{database}"
        )
        output = self._nodes.run(
            self._host, "sh", "-ac", script, user=self._endpoints.users["spark"], seconds=APPLICATION_SECONDS
        )
        return (json.loads(line) for line in output.splitlines() if line.startswith("{"))

    def close(self) -> None:
        """Remove what was put on the host."""
        self._nodes.run(self._host, "rm", "-rf", FOLDER)


def on_spark(nodes: Nodes, endpoints: Endpoints, queries: Sequence[Query], database: str, rounds: int) -> Any:
    """Return seconds and errors by side and query: an application of each kind in turn."""
    times, errors = _empty()
    spark = Spark(nodes, endpoints, queries)
    try:
        for number in range(rounds):
            for side in (KIT, STOCK):
                for result in spark.run(side, database):
                    _note(times, errors, side, result)
                _say(f"spark {side} {number + 1}: {sum(s[-1] for s in times[side].values()):.0f} s")
    finally:
        spark.close()
    return times, errors


def on_trino(nodes: Nodes, endpoints: Endpoints, queries: Sequence[Query], database: str, rounds: int) -> Any:
    """Return seconds and errors by side and query: each query with the kit and with stock, in turn."""
    times, errors = _empty()
    kit = kit_trino(endpoints)
    with stock.trino(nodes, endpoints) as stock_trino:
        sides: Mapping[str, Trino] = {KIT: kit, STOCK: stock_trino}
        for session in sides.values():
            session.sql(f"USE iceberg.{database}")
        for number in range(rounds):
            for query in queries:
                for side, session in sides.items():
                    _note(times, errors, side, _timed(session.sql, query))
            totals = [round(sum(seconds[-1] for seconds in times[side].values())) for side in sides]
            _say(f"trino {number + 1}: kit {totals[0]} s, stock {totals[1]} s")
    return times, errors


def kit_trino(endpoints: Endpoints) -> Trino:
    """Open a session of the kit's Trino; LakehouseError where there is none."""
    if endpoints.trino is None:
        raise LakehouseError(
            "the tables are made by Trino, which is not there", "make lakehouse PROFILE=full"
        )
    return Trino.connect(endpoints.trino.http, endpoints.users["trino"])


def _timed(ask: Callable[[str], Any], query: Query) -> dict[str, Any]:
    started = time.monotonic()
    try:
        ask(text(query))
    except EngineError as error:
        return {"query": query.name, "error": str(error)}
    return {"query": query.name, "seconds": round(time.monotonic() - started, 3)}


def _empty() -> tuple[Times, Errors]:
    return {KIT: {}, STOCK: {}}, {KIT: {}, STOCK: {}}


def _note(times: Times, errors: Errors, side: str, result: Mapping[str, Any]) -> None:
    if "seconds" in result:
        times[side].setdefault(result["query"], []).append(result["seconds"])
    else:
        errors[side][result["query"]] = result["error"]


def ratio(times: Times) -> float:
    """Return the speedup of the kit: the geometric mean over the queries that both sides completed."""
    common = times[KIT].keys() & times[STOCK].keys()
    return statistics.geometric_mean(
        statistics.median(times[STOCK][name]) / statistics.median(times[KIT][name]) for name in common
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 -- the run takes many minutes


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--endpoints", type=Path, default=BUILD / "endpoints.json")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=["spark", "trino"], default=["spark", "trino"])
    parser.add_argument("--queries", nargs="+", choices=[query.name for query in QUERIES])
    options = parser.parse_args(argv)
    chosen = [query for query in QUERIES if not options.queries or query.name in options.queries]
    endpoints = clusters.load(options.endpoints)
    kit = kit_trino(endpoints)
    result: dict[str, Any] = {}
    # Its end ends what it has started too.
    with raised(terminated, [signal.SIGTERM]), reach(endpoints) as nodes, tables(kit) as database:
        for engine in options.engines:
            measure = on_spark if engine == "spark" else on_trino
            times, errors = measure(nodes, endpoints, chosen, database, options.rounds)
            result[engine] = {"ratio": round(ratio(times), 2), "seconds": times, "errors": errors}
    write(TPCH, scale=SCALE, **result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
