"""Tables of the proofs: whoever makes one, it is measured where it lies, and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hive_metastore.ttypes import NoSuchObjectException

from lakehouse.risky import format_of
from smoke import metastore
from smoke.settings import Endpoints
from smoke.tables import Table, Tables


@dataclass
class AnyEnginesTables(Tables):
    """A maker that asks the metastore where a table lies: Trino puts a word of its own into the folder."""

    endpoints: Endpoints

    def location(self, table: Table) -> str | None:
        """Return the folder of a table in HDFS; None if there is no such table."""
        found = self._entry(table)
        return (
            urlsplit(found.sd.serdeInfo.parameters.get("path") or found.sd.location).path if found else None
        )

    def close(self) -> None:
        """Note where the blocks of every table that is still there are, then drop it."""
        for table in self._made:
            try:
                if location := self.location(table):
                    self.ledger.measure(table.short, table.format.name, location)
            finally:
                self._drop(table)

    def _drop(self, table: Table) -> None:
        """Let the format's engine drop it, and the metastore what is not of that format."""
        if self._kind(table) == table.format.name:
            self.lake.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        elif self.location(table):
            with metastore.Connection(self.endpoints.metastore, self.endpoints.users["hdfs"]) as client:
                client.drop_table(table.database, table.name, True)

    def _kind(self, table: Table) -> str | None:
        found = self._entry(table)
        return format_of(found.parameters) if found else None

    def _entry(self, table: Table) -> Any:
        """Return what the metastore knows of a table; None if it knows nothing."""
        with metastore.Connection(self.endpoints.metastore, self.endpoints.users["spark"]) as client:
            try:
                return client.get_table(table.database, table.name)
            except NoSuchObjectException:
                return None
