"""PyIceberg's Hive catalog, usable by several threads, with databases where the other engines expect them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pyiceberg.catalog.hive import HiveCatalog, _HiveClient

from lakehouse_clients.tables import ExactCreateTransaction, Table

_LOCATION = "location"


class Catalog(HiveCatalog):
    """The catalog `iceberg`; everything that PyIceberg's catalogs can do."""

    # PyIceberg keeps one connection for all threads, who then read each other's answers: here each call has
    # one of its own.
    @property
    def _client(self) -> Any:
        return self.metastore()

    @_client.setter
    def _client(self, client: Any) -> None:
        """Accept the one that PyIceberg made, and leave it unused."""

    def metastore(self) -> _HiveClient:
        """Return a new Thrift connection, opened by `with`, which gives the client of all metastore calls."""
        return self._create_hive_client(dict(self.properties))

    def create_namespace(self, namespace: Any, properties: Any = None) -> None:
        """Create a database, unless `properties` has a `location` in the folder of all Iceberg databases."""
        database = self.identifier_to_database(namespace)
        default = {_LOCATION: f"{self.properties['warehouse']}/{database}"}
        super().create_namespace(namespace, default | dict(properties or {}))

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        """Return the folder of a new table, and of no other: a renamed one keeps the folder of its name."""
        return f"{super()._get_default_warehouse_location(database_name, table_name)}-{uuid4().hex}"

    def _convert_hive_into_iceberg(self, table: Any) -> Table:
        """Return the table of a row of the metastore; all that returns a table comes through here."""
        return Table.of(super()._convert_hive_into_iceberg(table))

    def create_table_transaction(self, *arguments: Any, **options: Any) -> ExactCreateTransaction:
        """Return a transaction that creates a table: the parameters of `create_table`."""
        return ExactCreateTransaction(self._create_staged_table(*arguments, **options))
