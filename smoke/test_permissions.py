"""What one member of the group makes, another may change; who is not in it is refused."""

from __future__ import annotations

import pytest
from hive_metastore.ttypes import MetaException

from smoke import metastore
from smoke.lake import SESSION, Lake
from smoke.namenode import NameNode, NameNodeError
from smoke.nodes import Nodes
from smoke.settings import Endpoints
from smoke.tables import ORDERS, Table, Tables

OUTSIDER = "nobody"
READ_WRITE_DROP: list[tuple[str, str, dict[str, str]]] = [
    ("GET", "LISTSTATUS", {}),
    ("GET", "GETFILESTATUS", {}),
    ("PUT", "MKDIRS", {}),
    ("PUT", "SETTIMES", {"modificationtime": "0"}),
    ("DELETE", "DELETE", {"recursive": "true"}),
]


@pytest.mark.operation("change by another member")
def test_another_member_changes_it(
    lake: Lake, all_tables: list[Tables], nodes: Nodes, endpoints: Endpoints
) -> None:
    """Another application under another Unix user, which is also a second reader of what was written."""
    if endpoints.project and endpoints.spark.client == endpoints.spark.connect_host:
        pytest.skip("there is no container in which people work: it comes with the profiles client and all")
    ours = [tables.new() for tables in all_tables]
    theirs = [tables.name() for tables in all_tables]
    statements = []
    for our, their in zip(ours, theirs, strict=True):
        statements += [
            f"INSERT INTO {our} VALUES (4, current_user(), NULL, 40)",
            f"CREATE TABLE {their} USING {their.format} AS SELECT id, customer FROM {our} WHERE id > 2",
        ]
    member = endpoints.users["hive"]
    spark_sql(nodes, endpoints, member, statements)

    for our, their in zip(ours, theirs, strict=True):
        lake.expect(f"SELECT id, customer FROM {our} WHERE id > 2 ORDER BY id", [(3, "eve"), (4, member)])
        lake.sql(f"DELETE FROM {their} WHERE id = 3")
        lake.expect(f"SELECT id, customer FROM {their}", [(4, member)])


@pytest.mark.operation("outsider refused")
def test_an_outsider_is_refused(lake: Lake, namenode: NameNode, table: Table, endpoints: Endpoints) -> None:
    """HDFS guards the files; the metastore asks HDFS before it drops a table."""
    for method, operation, query in READ_WRITE_DROP:
        with pytest.raises(NameNodeError, match=f"Permission denied: user={OUTSIDER}"):
            namenode.webhdfs(method, operation, table.path, OUTSIDER, **query)
    with (
        metastore.Connection(endpoints.metastore, OUTSIDER, (OUTSIDER,)) as client,
        pytest.raises(MetaException, match=r"(?i)permission denied|not writable"),
    ):
        client.drop_table(table.database, table.name, True)
    lake.expect(f"SELECT * FROM {table} ORDER BY id", ORDERS)


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
