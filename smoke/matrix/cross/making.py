"""Tables of the proofs: whoever makes one, it is measured where it lies, and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from hive_metastore.ttypes import NoSuchObjectException

from smoke import metastore
from smoke.settings import Endpoints
from smoke.tables import Table, Tables


@dataclass
class AnyEnginesTables(Tables):
    """A maker that asks the metastore where a table lies: Trino puts a word of its own into the folder."""

    endpoints: Endpoints

    def location(self, table: Table) -> str | None:
        """Return the folder of a table in HDFS; None if there is no such table."""
        with metastore.Connection(self.endpoints.metastore, self.endpoints.users["spark"]) as client:
            try:
                found = client.get_table(table.database, table.name)
            except NoSuchObjectException:
                return None
        return urlsplit(found.sd.serdeInfo.parameters.get("path") or found.sd.location).path

    def close(self) -> None:
        """Note where the blocks of every table that is still there are, then drop it."""
        for table in self._made:
            try:
                if location := self.location(table):
                    self.ledger.measure(table.short, table.format.name, location)
            finally:
                self.lake.sql(f"DROP TABLE IF EXISTS {table} PURGE")
