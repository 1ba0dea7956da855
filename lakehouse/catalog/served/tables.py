"""Handlers of calls about tables and views, their columns and constraints."""

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
    """The calls about tables and views."""

    def get_all_tables(self, database: str) -> list[str]:
        return self.reader.tables(place(database))

    def get_tables(self, database: str, pattern: str | None) -> list[str]:
        return matching(self.reader.tables(place(database)), pattern)

    def get_tables_by_type(self, database: str, pattern: str | None, kind: str) -> list[str]:
        types = self.reader.types(place(database))
        return matching((name for name, table_type in types.items() if table_type == kind), pattern)

    def get_table_meta(
        self, databases: str | None, pattern: str | None, kinds: list[str] | None
    ) -> list[TableMeta]:
        parent = place(databases)
        return [
            self._meta(Name(parent.catalog, database, name))
            for database in matching(self.reader.databases(parent.catalog), parent.database)
            for types in [self.reader.types(Name(parent.catalog, database))]
            for name in matching(types, pattern)
            if not kinds or types[name] in kinds
        ]

    def get_table(self, database: str, name: str) -> Table:
        return self._located(table(database, name))

    def get_table_req(self, request: GetTableRequest) -> GetTableResult:
        return GetTableResult(self._located(table(request.dbName, request.tblName, request.catName)))

    # Engines list tables with these, and read a single one with `get_table`: so many need no check in HDFS.

    def get_table_objects_by_name(self, database: str, names: list[str]) -> list[Table]:
        return self._several(place(database), names)

    def get_table_objects_by_name_req(self, request: GetTablesRequest) -> GetTablesResult:
        parent = place(request.dbName, request.catName)
        names = request.tblNames
        if names is None:
            names = matching(self.reader.tables(parent), request.tablesPattern)
        return GetTablesResult(self._several(parent, names))

    def get_fields(self, database: str, name: str) -> list[FieldSchema]:
        return list(self._convert(table(database, name)).sd.cols)

    def get_fields_with_environment_context(self, database: str, name: str, _: Any) -> list[FieldSchema]:
        return self.get_fields(database, name)

    def get_fields_req(self, request: Any) -> GetFieldsResponse:
        converted = self._convert(table(request.dbName, request.tblName, request.catName))
        return GetFieldsResponse(list(converted.sd.cols))

    def get_schema(self, database: str, name: str) -> list[FieldSchema]:
        return _schema(self._convert(table(database, name)))

    def get_schema_with_environment_context(self, database: str, name: str, _: Any) -> list[FieldSchema]:
        return self.get_schema(database, name)

    def get_schema_req(self, request: Any) -> GetSchemaResponse:
        return GetSchemaResponse(
            _schema(self._convert(table(request.dbName, request.tblName, request.catName)))
        )

    def get_primary_keys(self, request: Any) -> PrimaryKeysResponse:
        return PrimaryKeysResponse(self._constraints(_table_of(request)).primary_keys)

    def get_foreign_keys(self, request: ForeignKeysRequest) -> ForeignKeysResponse:
        if not request.foreign_tbl_name:
            raise MetaException(
                "foreign keys are found by the table that has them, not by their parent alone"
            )
        child = table(request.foreign_db_name, request.foreign_tbl_name, request.catName)
        parent = (request.parent_db_name or "").lower(), (request.parent_tbl_name or "").lower()
        keys = self._constraints(child).foreign_keys
        return ForeignKeysResponse(
            [key for key in keys if not parent[1] or parent == (key.pktable_db, key.pktable_name)]
        )

    def get_unique_constraints(self, request: Any) -> UniqueConstraintsResponse:
        return UniqueConstraintsResponse(self._constraints(_table_of(request)).unique)

    def get_not_null_constraints(self, request: Any) -> NotNullConstraintsResponse:
        return NotNullConstraintsResponse(self._constraints(_table_of(request)).not_null)

    def get_default_constraints(self, request: Any) -> DefaultConstraintsResponse:
        return DefaultConstraintsResponse(self._constraints(_table_of(request)).default)

    def get_check_constraints(self, request: Any) -> CheckConstraintsResponse:
        return CheckConstraintsResponse(self._constraints(_table_of(request)).check)

    def get_all_table_constraints(self, request: Any) -> AllTableConstraintsResponse:
        all_constraints = self._constraints(table(request.dbName, request.tblName, request.catName))
        return AllTableConstraintsResponse(
            SQLAllTableConstraints(
                primaryKeys=all_constraints.primary_keys,
                foreignKeys=all_constraints.foreign_keys,
                uniqueConstraints=all_constraints.unique,
                notNullConstraints=all_constraints.not_null,
                defaultConstraints=all_constraints.default,
                checkConstraints=all_constraints.check,
            )
        )

    def _convert(self, name: Name) -> Table:
        return objects.table(name, self.table(name), self.report_field, self.reader.volatile(name))

    def _located(self, name: Name) -> Table:
        """Return a table with its current locations."""

        def partition() -> Document | None:
            first = next(iter(self.reader.partitions(name)), None)
            if first is None:
                return None
            return self.reader.partition(Name(name.catalog, name.database, name.table, first))

        document = self.locations.table(name, self.table(name), partition)
        return objects.table(name, document, self.report_field, self.reader.volatile(name))

    def _several(self, parent: Name, names: Iterable[str]) -> list[Table]:
        """Return the tables of these names, as far as they exist."""
        full_names = [Name(parent.catalog, parent.database, name.lower()) for name in names]
        return [self._convert(name) for name in full_names if self.reader.document(name) is not None]

    def _meta(self, name: Name) -> TableMeta:
        document = self.table(name)
        return TableMeta(
            dbName=name.database,
            tableName=name.table,
            tableType=document.get("type"),
            comments=document.get("parameters", {}).get("comment"),
            catName=name.catalog,
        )

    def _constraints(self, name: Name) -> Constraints:
        converted = constraints(name, self.table(name), self.report_field)
        for key in converted.foreign_keys:
            # The row of a foreign key lacks the name of the referenced key.
            parent = Name(name.catalog, key.pktable_db or "", key.pktable_name or "")
            document = self.reader.document(parent) or {}
            keys = constraints(parent, document, self.report_field).primary_keys
            key.pk_name = keys[0].pk_name if keys else None
        return converted


def _schema(converted: Table) -> list[FieldSchema]:
    return [*converted.sd.cols, *converted.partitionKeys]


def _table_of(request: Any) -> Name:
    """Return the table of a request for a kind of constraint."""
    return table(request.db_name, request.tbl_name, request.catName)
