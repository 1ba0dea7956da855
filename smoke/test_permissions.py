"""What one member of the group makes, another may change; who is not in it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from hive_metastore.ttypes import MetaException

from suites.testbed import metastore
from suites.testbed.databases import Databases, Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import SESSION, Spark
from suites.testbed.namenode import NameNode, NameNodeError
from suites.testbed.nodes import Nodes
from suites.testbed.placement import Ledger
from suites.testbed.tables import ORDERS, Tables, of_each_format

OUTSIDER = "nobody"
READ_WRITE_DROP: list[tuple[str, str, dict[str, str]]] = [
    ("GET", "LISTSTATUS", {}),
    ("GET", "GETFILESTATUS", {}),
    ("PUT", "MKDIRS", {}),
    ("PUT", "SETTIMES", {"modificationtime": "0"}),
    ("DELETE", "DELETE", {"recursive": "true"}),
]


@dataclass(frozen=True)
class Work:
    """What another member does: a row into each of our tables, and a table of theirs from it."""

    member: str
    makers: list[Tables]
    ours: list[Table]
    theirs: list[Table]
    done: Future[str]


@pytest.fixture(scope="session")
def begun(
    _spark: Spark, databases: Databases, ledger: Ledger, nodes: Nodes, endpoints: Endpoints
) -> Iterator[Work | None]:
    """The work; it goes on beside other tests, as a program starts slowly. None: there is no place for it."""
    if endpoints.project and endpoints.spark.client == endpoints.spark.connect_host:
        yield None
        return
    member = endpoints.users["hive"]
    with ExitStack() as stack:
        makers = stack.enter_context(of_each_format(_spark, databases, ledger))
        pool = stack.enter_context(ThreadPoolExecutor(1))
        ours = [tables.new() for tables in makers]
        theirs = [tables.name() for tables in makers]
        statements = []
        for our, their in zip(ours, theirs, strict=True):
            statements += [
                f"INSERT INTO {our} VALUES (4, current_user(), NULL, 40)",
                f"CREATE TABLE {their} USING {their.format} AS SELECT id, customer FROM {our} WHERE id > 2",
            ]
        done = pool.submit(spark_sql, nodes, endpoints, member, statements)
        yield Work(member, makers, ours, theirs, done)


@pytest.fixture
def work(begun: Work | None) -> Iterator[Work]:
    """The same; its tables are measured and removed after the test, like those of any other."""
    if begun is None:
        pytest.skip("there is no container in which people work: it comes with the profiles client and all")
    yield begun
    for tables in begun.makers:
        tables.close()


# Begun with the first test of this file, awaited after all others.
@pytest.mark.closing
@pytest.mark.operation("change by another member")
def test_another_member_changes_it(spark: Spark, work: Work) -> None:
    """Another application under another Unix user, which is also a second reader of what was written."""
    work.done.result()
    for our, their in zip(work.ours, work.theirs, strict=True):
        spark.expect(
            f"SELECT id, customer FROM {our} WHERE id > 2 ORDER BY id", [(3, "eve"), (4, work.member)]
        )
        spark.sql(f"DELETE FROM {their} WHERE id = 3")
        spark.expect(f"SELECT id, customer FROM {their}", [(4, work.member)])


@pytest.mark.usefixtures("begun")
@pytest.mark.operation("outsider refused")
def test_an_outsider_is_refused(spark: Spark, namenode: NameNode, table: Table, endpoints: Endpoints) -> None:
    """HDFS guards the files; the metastore asks HDFS before it drops a table."""
    for method, operation, query in READ_WRITE_DROP:
        with pytest.raises(NameNodeError, match=f"Permission denied: user={OUTSIDER}"):
            namenode.webhdfs(method, operation, table.path, OUTSIDER, **query)
    with (
        metastore.Connection(endpoints.metastore, OUTSIDER, (OUTSIDER,)) as client,
        pytest.raises(MetaException, match=r"(?i)permission denied|not writable"),
    ):
        client.drop_table(table.database, table.name, True)
    spark.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)


def spark_sql(nodes: Nodes, endpoints: Endpoints, user: str, statements: list[str]) -> str:
    """Run statements on the client machine as a Unix user, in one process without executors."""
    return nodes.run(
        endpoints.spark.client,
        f"{endpoints.spark.home}/bin/spark-sql",
        "--master",
        "local[1]",
        *(argument for name, value in SESSION.items() for argument in ("--conf", f"{name}={value}")),
        "-e",
        ";\n".join(statements),
        user=user,
        # The process is too short for the optimizing compiler to pay.
        environment={
            "SPARK_CONF_DIR": endpoints.spark.conf_dir,
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
        },
        seconds=120,
    )
