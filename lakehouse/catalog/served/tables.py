"""Answers about tables and views, their columns and constraints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hive_metastore.ttypes import (
    AllTableConstraintsResponse,
    CheckConstraintsResponse,
    DefaultConstraintsResponse,
    FieldSchema,
    ForeignKeysRequest,
    ForeignKeysResponse,
    GetFieldsResponse,
    GetSchemaResponse,
    GetTableRequest,
    GetTableResult,
    GetTablesRequest,
    GetTablesResult,
    MetaException,
    NotNullConstraintsResponse,
    PrimaryKeysResponse,
    SQLAllTableConstraints,
    Table,
    TableMeta,
    UniqueConstraintsResponse,
)

from lakehouse.catalog.bindings import objects
from lakehouse.catalog.bindings.constraints import Constraints, constraints
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name
from lakehouse.catalog.served.request import Request, matching, place, table


class Tables(Request):
    """What is in a database."""

    def get_all_tables(self, database: str) -> list[str]:
        return self.past.tables(place(database))

    def get_tables(self, database: str, pattern: str | None) -> list[str]:
        return matching(self.past.tables(place(database)), pattern)

    def get_tables_by_type(self, database: str, pattern: str | None, kind: str) -> list[str]:
        types = self.past.types(place(database))
        return matching((name for name, found in types.items() if found == kind), pattern)

    def get_table_meta(
        self, databases: str | None, pattern: str | None, kinds: list[str] | None
    ) -> list[TableMeta]:
        asked = place(databases)
        return [
            self._meta(Name(asked.catalog, database, name))
            for database in matching(self.past.databases(asked.catalog), asked.database)
            for types in [self.past.types(Name(asked.catalog, database))]
            for name in matching(types, pattern)
            if not kinds or types[name] in kinds
        ]

    def get_table(self, database: str, name: str) -> Table:
        return self._located(table(database, name))

    def get_table_req(self, request: GetTableRequest) -> GetTableResult:
        return GetTableResult(self._located(table(request.dbName, request.tblName, request.catName)))

    # Engines list tables by these, and ask for the one that they read alone: HDFS is not asked for many.

    def get_table_objects_by_name(self, database: str, names: list[str]) -> list[Table]:
        return self._several(place(database), names)

    def get_table_objects_by_name_req(self, request: GetTablesRequest) -> GetTablesResult:
        above = place(request.dbName, request.catName)
        names = request.tblNames
        if names is None:
            names = matching(self.past.tables(above), request.tablesPattern)
        return GetTablesResult(self._several(above, names))

    def get_fields(self, database: str, name: str) -> list[FieldSchema]:
        return list(self._made(table(database, name)).sd.cols)

    def get_fields_with_environment_context(self, database: str, name: str, _: Any) -> list[FieldSchema]:
        return self.get_fields(database, name)

    def get_fields_req(self, request: Any) -> GetFieldsResponse:
        found = self._made(table(request.dbName, request.tblName, request.catName))
        return GetFieldsResponse(list(found.sd.cols))

    def get_schema(self, database: str, name: str) -> list[FieldSchema]:
        return _schema(self._made(table(database, name)))

    def get_schema_with_environment_context(self, database: str, name: str, _: Any) -> list[FieldSchema]:
        return self.get_schema(database, name)

    def get_schema_req(self, request: Any) -> GetSchemaResponse:
        return GetSchemaResponse(_schema(self._made(table(request.dbName, request.tblName, request.catName))))

    def get_primary_keys(self, request: Any) -> PrimaryKeysResponse:
        return PrimaryKeysResponse(self._constraints(_named(request)).primary_keys)

    def get_foreign_keys(self, request: ForeignKeysRequest) -> ForeignKeysResponse:
        if not request.foreign_tbl_name:
            raise MetaException(
                "foreign keys are found by the table that has them, not by their parent alone"
            )
        own = table(request.foreign_db_name, request.foreign_tbl_name, request.catName)
        parent = (request.parent_db_name or "").lower(), (request.parent_tbl_name or "").lower()
        found = self._constraints(own).foreign_keys
        return ForeignKeysResponse(
            [one for one in found if not parent[1] or parent == (one.pktable_db, one.pktable_name)]
        )

    def get_unique_constraints(self, request: Any) -> UniqueConstraintsResponse:
        return UniqueConstraintsResponse(self._constraints(_named(request)).unique)

    def get_not_null_constraints(self, request: Any) -> NotNullConstraintsResponse:
        return NotNullConstraintsResponse(self._constraints(_named(request)).not_null)

    def get_default_constraints(self, request: Any) -> DefaultConstraintsResponse:
        return DefaultConstraintsResponse(self._constraints(_named(request)).default)

    def get_check_constraints(self, request: Any) -> CheckConstraintsResponse:
        return CheckConstraintsResponse(self._constraints(_named(request)).check)

    def get_all_table_constraints(self, request: Any) -> AllTableConstraintsResponse:
        found = self._constraints(table(request.dbName, request.tblName, request.catName))
        return AllTableConstraintsResponse(
            SQLAllTableConstraints(
                primaryKeys=found.primary_keys,
                foreignKeys=found.foreign_keys,
                uniqueConstraints=found.unique,
                notNullConstraints=found.not_null,
                defaultConstraints=found.default,
                checkConstraints=found.check,
            )
        )

    def _made(self, name: Name) -> Table:
        return objects.table(name, self.table(name), self.lost, self.past.volatile(name))

    def _located(self, name: Name) -> Table:
        """Return a table with the places of its files."""

        def partition() -> Document | None:
            first = next(iter(self.past.partitions(name)), None)
            if first is None:
                return None
            return self.past.partition(Name(name.catalog, name.database, name.table, first))

        document = self.locations.table(name, self.table(name), partition)
        return objects.table(name, document, self.lost, self.past.volatile(name))

    def _several(self, above: Name, names: Iterable[str]) -> list[Table]:
        """Return those tables that are there."""
        wanted = [Name(above.catalog, above.database, one.lower()) for one in names]
        return [self._made(one) for one in wanted if self.past.said(one) is not None]

    def _meta(self, name: Name) -> TableMeta:
        said = self.table(name)
        return TableMeta(
            dbName=name.database,
            tableName=name.table,
            tableType=said.get("type"),
            comments=said.get("parameters", {}).get("comment"),
            catName=name.catalog,
        )

    def _constraints(self, name: Name) -> Constraints:
        found = constraints(name, self.table(name), self.lost)
        for one in found.foreign_keys:
            # The row of a foreign key does not name the key that it refers to.
            parent = Name(name.catalog, one.pktable_db or "", one.pktable_name or "")
            said = self.past.said(parent) or {}
            keys = constraints(parent, said, self.lost).primary_keys
            one.pk_name = keys[0].pk_name if keys else None
        return found


def _schema(found: Table) -> list[FieldSchema]:
    return [*found.sd.cols, *found.partitionKeys]


def _named(request: Any) -> Name:
    """Return the table of a request for a kind of constraint."""
    return table(request.db_name, request.tbl_name, request.catName)
