"""Who works on the cluster while a verb changes it: Spark writes a table of one column, Trino reads it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from suites.testbed.engines.trino import Trino
from tests.cluster.machines import Machine
from tests.cluster.stream import Stream, commits, queries


@dataclass(frozen=True)
class Users:
    """Spark writes from a client, Trino reads."""

    client: Machine
    trino: Trino
    table: str

    def empty(self) -> None:
        self.trino.sql(f"delete from {self.table}")

    def writing(self) -> AbstractContextManager[Stream]:
        return commits(self.client, self.table)

    def asking(self) -> AbstractContextManager[Stream]:
        return queries(self.trino, f"select count(*) from {self.table}")

    def assert_whole(self, written: Stream) -> None:
        """Every row whose commit was answered is there, once."""
        written.assert_whole([number for (number,) in self.trino.sql(f"select number from {self.table}")])


@contextmanager
def at_work(client: Machine, trino: Trino) -> Iterator[Users]:
    """Give users a database of their own, gone at the end."""
    name = f"kit_users_{secrets.token_hex(4)}"
    nameservice, root = (client.variable(f"lakehouse_{key}") for key in ("nameservice", "root"))
    trino.sql(f"create schema iceberg.{name} with (location = 'hdfs://{nameservice}{root}/iceberg/{name}')")
    trino.sql(f"create table iceberg.{name}.rows (number integer)")
    yield Users(client, trino, f"iceberg.{name}.rows")
    trino.sql(f"drop table iceberg.{name}.rows")
    trino.sql(f"drop schema iceberg.{name}")
