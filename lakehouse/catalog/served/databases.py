"""Handlers of calls about catalogs, databases and functions."""

from __future__ import annotations

from collections.abc import Iterator

from hive_metastore.ttypes import (
    Database,
    Function,
    GetAllFunctionsResponse,
    GetCatalogRequest,
    GetCatalogResponse,
    GetCatalogsResponse,
    GetDatabaseRequest,
    NoSuchObjectException,
)

from lakehouse.catalog.bindings import objects
from lakehouse.catalog.names import Name
from lakehouse.catalog.served.request import Request, matching, place


class Databases(Request):
    """The calls about catalogs, databases and functions."""

    def get_catalogs(self) -> GetCatalogsResponse:
        return GetCatalogsResponse(self.reader.catalogs())

    def get_catalog(self, request: GetCatalogRequest) -> GetCatalogResponse:
        name = Name(request.name.lower())
        document = self.reader.document(name)
        if document is None:
            raise NoSuchObjectException(f"no catalog {name}")
        return GetCatalogResponse(objects.catalog(name, document, self.report_field))

    def get_all_databases(self) -> list[str]:
        return self.get_databases(None)

    def get_databases(self, pattern: str | None) -> list[str]:
        name = place(pattern)
        return matching(self.reader.databases(name.catalog), name.database)

    def get_database(self, name: str) -> Database:
        return self._database(place(name))

    def get_database_req(self, request: GetDatabaseRequest) -> Database:
        return self._database(place(request.name, request.catalogName))

    def get_functions(self, database: str, pattern: str | None) -> list[str]:
        return matching(self.reader.functions(place(database)), pattern)

    def get_function(self, database: str, name: str) -> Function:
        parent = place(database)
        return self._function(Name(parent.catalog, parent.database, function=name.lower()))

    def get_all_functions(self) -> GetAllFunctionsResponse:
        return GetAllFunctionsResponse([self._function(name) for name in self._functions()])

    def _functions(self) -> Iterator[Name]:
        for catalog in self.reader.catalogs():
            for database in self.reader.databases(catalog):
                for function in self.reader.functions(Name(catalog, database)):
                    yield Name(catalog, database, function=function)

    def _database(self, name: Name) -> Database:
        document = self.reader.document(name) if name.database else None
        if document is None:
            raise NoSuchObjectException(f"{name} database not found")
        return objects.database(name, document, self.report_field)

    def _function(self, name: Name) -> Function:
        document = self.reader.document(name)
        if document is None:
            raise NoSuchObjectException(f"{name} function not found")
        return objects.function(name, document, self.report_field)
