"""On a client node, one line gives a person the catalog: every library reads, and what is written is seen."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.machines import Machine

pytestmark = [pytest.mark.cluster, pytest.mark.group("clients")]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python-clients.md"
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

FLIGHTS = 336_776
TABLES = ("iceberg.nycflights.flights", "delta.nycflights_delta.flights")

CONNECT = "import json, lakehouse_clients; lake = lakehouse_clients.connect(); "
COUNTS = {
    "arrow": "lake.arrow(name, columns=['carrier']).num_rows",
    "polars": "lake.polars(name, columns=['carrier']).height",
    "duckdb": "lake.sql(f'SELECT count(*) AS n FROM {name}')['n'][0].as_py()",
}
OWN = {
    "pyiceberg": "lake.iceberg.load_table('nycflights.flights').scan().count()",
    "delta-rs": "lake.delta('nycflights_delta.flights').count()",
}
FORKED = """
import os, signal, lakehouse_clients
lake = lakehouse_clients.connect()
lake.arrow("iceberg.nycflights.airlines")
if not (child := os.fork()):
    signal.alarm(60)
    os._exit(0 if lake.arrow("iceberg.nycflights.flights", ["carrier"]).num_rows == 336776 else 3)
print(os.waitpid(child, 0)[1])
"""
# Rows before 1970, after, and of NULL; one is updated, one deleted, one appended.
WRITTEN = """
import datetime as dt, pyarrow as pa, lakehouse_clients
lake = lakehouse_clients.connect()
at = [dt.datetime(1969, 12, 31, 23), dt.datetime(2024, 2, 29), None, dt.datetime(2025, 1, 1)]
rows = pa.table(
    {{"id": [1, 2, 3, 4], "k": ["abc", "old", "gone", None], "ts": pa.array(at, pa.timestamp("us"))}}
)
for name in {names}:
    lake.append(name, rows.slice(0, 3))
    table = lake.iceberg.load_table(name.removeprefix("iceberg."))
    table.upsert(rows.slice(1, 1).set_column(1, "k", pa.array(["new"])), join_cols=["id"])
    table.delete("k = 'gone'")
    lake.append(name, rows.slice(3))
"""
CONDITIONS = """
import math, pyarrow as pa, lakehouse_clients
lake = lakehouse_clients.connect()
texts = pa.table({{"k": pa.array(["a", "b", "", "it's", None], pa.string())}})
numbers = pa.table({{"x": pa.array([1.0, 2.0, math.nan, None], pa.float64())}})
for table, rows, condition, found in [
    ("iceberg.{database}.k", texts, "k != 'a'", 3),
    ("iceberg.{database}.x", numbers, "not (x = 1.0)", 2),
    ("delta.{database}.d", pa.table({{"x": [1.0, math.nan]}}), "x > 5.0", 1),
]:
    parts = [rows.slice(each, 1) for each in range(len(rows))] if "iceberg" in table else [rows]
    lake.create(table, parts[0])
    for part in parts[1:]:
        lake.append(table, part)
    assert lake.arrow(table, filter=condition).num_rows == found, condition
    name = table.partition(".")[2]
    (lake.delta(name) if "delta" in table else lake.iceberg.load_table(name)).delete(condition)
    assert lake.arrow(table, filter=condition).num_rows == 0, condition
"""


class Client:
    """lakehouse-python on a node, as the user of Spark."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.user = machine.variable("lakehouse_users")["spark"]

    def runs(self, program: str) -> str:
        """What a Python program prints."""
        return self.machine.run("runuser -u %s -- lakehouse-python -c %s", self.user, program)

    def says(self, expression: str) -> Any:
        """The value of an expression over `lake`."""
        return json.loads(self.runs(f"{CONNECT}print(json.dumps({expression}, default=str))"))

    def spark(self, statements: str) -> list[str]:
        """What Spark's SQL shell prints."""
        home = f"{self.machine.variable('lakehouse_install_dir')}/spark/current"
        conf = f"{self.machine.variable('lakehouse_config_dir')}/spark"
        said = self.machine.run(
            "runuser -u %s -- env SPARK_CONF_DIR=%s %s/bin/spark-sql -S -e %s 2>/dev/null",
            self.user,
            conf,
            home,
            statements,
        )
        return said.split()


@pytest.fixture
def client(node: Machine) -> Client:
    return Client(node)


@pytest.fixture
def spare(client: Client) -> Iterator[str]:
    """The name of a database that this test may create, gone at its end with its tables."""
    name = f"clients_{secrets.token_hex(3)}"
    yield name
    client.runs(
        f"{CONNECT}from lakehouse_clients.file_io import file_system\n"
        f"with lake.iceberg.metastore() as client: client.drop_database({name!r}, True, True)\n"
        f"place = lake.settings.warehouse + '/iceberg/{name}'\n"
        "files = file_system(lake.settings.hdfs)\n"
        "if files.exists(place): files.rm(place, recursive=True)"
    )


@pytest.fixture
def database(client: Client, spare: str) -> str:
    """A database of this test."""
    client.runs(f"{CONNECT}lake.create_database('iceberg.{spare}')")
    return spare


def test_the_client_says_that_the_catalog_answers(client: Client) -> None:
    said = client.machine.run("runuser -u %s -- lakehouse-python -m lakehouse_clients", client.user)
    assert said.startswith("alive: ")


@pytest.mark.parametrize("library", COUNTS)
def test_every_library_counts_the_same_flights_in_both_formats(client: Client, library: str) -> None:
    counts = client.says(f"[{COUNTS[library]} for name in {TABLES}]")
    assert counts == [FLIGHTS, FLIGHTS]


@pytest.mark.parametrize("library", OWN)
def test_the_libraries_themselves_are_at_hand(client: Client, library: str) -> None:
    assert client.says(OWN[library]) == FLIGHTS


def test_a_moment_has_microseconds_and_utc(client: Client) -> None:
    types = client.says(f"[lake.arrow(name, ['time_hour']).schema[0].type for name in {TABLES}]")
    assert types == ["timestamp[us, tz=UTC]"] * 2


def test_a_forked_child_reads(client: Client) -> None:
    assert client.runs(FORKED).split() == ["0"]


def test_spark_sees_what_a_client_wrote_and_the_client_what_spark_wrote(
    client: Client, database: str
) -> None:
    names = [f"{kind}.{database}.{kind}_airlines" for kind in ("iceberg", "delta")]
    client.runs(
        f"{CONNECT}rows = lake.arrow('iceberg.nycflights.airlines')\n"
        f"for name in {names}: lake.create(name, rows); lake.append(name, rows)"
    )
    first, second = (name.replace("delta.", "spark_catalog.") for name in names)
    counts = client.spark(
        f"SELECT count(*) FROM {first}; SELECT count(*) FROM {second};"
        f"INSERT INTO {first} VALUES ('ZZ', 'Spark Air'); INSERT INTO {second} VALUES ('ZZ', 'Spark Air')"
    )
    assert counts == ["32", "32"]
    assert client.says(f"[lake.arrow(name).num_rows for name in {names}]") == [33, 33]
    assert client.says(f"[lake.arrow(name, filter=\"carrier = 'ZZ'\").num_rows for name in {names}]") == [
        1,
        1,
    ]


@pytest.mark.longdrill
def test_tables_of_spark_with_every_partitioning_are_written(client: Client, database: str) -> None:
    parts = ["years(ts)", "months(ts)", "days(ts)", "hours(ts)", "bucket(4, id)", "truncate(2, k)"]
    names = [f"iceberg.{database}.by_{part.partition('(')[0]}" for part in parts]
    client.spark(
        ";".join(
            f"CREATE TABLE {name} (id BIGINT, k STRING, ts TIMESTAMP_NTZ) USING iceberg"
            f" PARTITIONED BY ({part})"
            for name, part in zip(names, parts, strict=True)
        )
    )
    client.runs(WRITTEN.format(names=names))
    left = client.spark(
        ";".join(f"SELECT concat_ws('-', id, k, year(ts)) FROM {name} ORDER BY id" for name in names)
    )
    assert left == ["1-abc-1969", "2-new-2024", "4-2025"] * len(names)


@pytest.mark.longdrill
def test_a_condition_deletes_what_it_finds_and_other_engines_keep_the_rest(
    client: Client, database: str
) -> None:
    """A file for each row, so that statistics alone decide."""
    client.runs(CONDITIONS.format(database=database))
    said = client.spark(
        ";".join(
            f"SELECT coalesce(CAST({column} AS STRING), 'none') FROM {name} ORDER BY 1"
            for column, name in [
                ("k", f"iceberg.{database}.k"),
                ("x", f"iceberg.{database}.x"),
                ("x", f"spark_catalog.{database}.d"),
            ]
        )
    )
    assert said == ["a", "none", "1.0", "none", "1.0"]


@pytest.mark.longdrill
def test_deltas_module_for_python_works_with_spark_submit(client: Client, database: str) -> None:
    """Also in a program with folders of its own on Python's path."""
    client.runs(
        f"{CONNECT}import pyarrow as pa\nlake.create('delta.{database}.merged', pa.table({{'id': [1, 2]}}))"
    )
    program = f"""
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.eventLog.enabled", "false").getOrCreate()
table = DeltaTable.forName(spark, "{database}.merged")
new = spark.range(2, 4).alias("new")
table.alias("old").merge(new, "old.id = new.id").whenNotMatchedInsertAll().execute()
table.delete("id = 1")
print(sorted(row.id for row in table.toDF().collect()))
"""
    with client.machine.scratch("kit-delta-module") as folder:
        path = f"{folder}/merge.py"
        client.machine.run("printf %%s %s > %s", program, path)
        said = client.machine.run(
            "cd / && runuser -u %s -- env PYTHONPATH=%s spark-submit %s 2>/dev/null",
            client.user,
            folder,
            path,
        )
    assert said.splitlines()[-1] == "[2, 3]"


def test_every_snippet_of_the_page_runs_as_printed(client: Client, spare: str) -> None:
    """One after the other in one program, as a reader types them; only the database has a name of its own."""
    snippets = SNIPPET.findall(PAGE.read_text(encoding="utf-8"))
    assert len(snippets) > 1
    checks = (
        "assert lake.arrow('iceberg.mine.people').num_rows == 4\n"
        "assert lake.arrow('delta.mine.visitors')['name'].to_pylist() == ['ada', 'eve']\n"
    )
    client.runs(re.sub(r"\bmine\b", spare, "\n".join([*snippets, checks])))


def test_a_refusal_is_one_line_for_root_too(client: Client) -> None:
    done = client.machine.shell.run("lakehouse-python -m lakehouse_clients")
    group = client.machine.variable("lakehouse_group")
    assert done.rc == 1
    assert re.fullmatch(
        rf"root may not \w+ /\S+; next: ask as a member of the group {group} .*\n", done.stderr
    )


def test_a_wrong_name_is_one_line(client: Client) -> None:
    said = client.runs(
        f"{CONNECT}\ntry: lake.arrow('delta.nycflights.flights')\n"
        "except lakehouse_clients.ClientError as error: print(error)"
    )
    assert said.strip() == (
        "nycflights.flights is not a Delta table but iceberg; next: try iceberg.nycflights.flights"
    )
