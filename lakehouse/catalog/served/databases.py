"""Answers about catalogs, databases and functions."""

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
    """What has no rows."""

    def get_catalogs(self) -> GetCatalogsResponse:
        return GetCatalogsResponse(self.past.catalogs())

    def get_catalog(self, request: GetCatalogRequest) -> GetCatalogResponse:
        name = Name(request.name.lower())
        said = self.past.said(name)
        if said is None:
            raise NoSuchObjectException(f"no catalog {name}")
        return GetCatalogResponse(objects.catalog(name, said, self.lost))

    def get_all_databases(self) -> list[str]:
        return self.get_databases(None)

    def get_databases(self, pattern: str | None) -> list[str]:
        asked = place(pattern)
        return matching(self.past.databases(asked.catalog), asked.database)

    def get_database(self, name: str) -> Database:
        return self._database(place(name))

    def get_database_req(self, request: GetDatabaseRequest) -> Database:
        return self._database(place(request.name, request.catalogName))

    def get_functions(self, database: str, pattern: str | None) -> list[str]:
        return matching(self.past.functions(place(database)), pattern)

    def get_function(self, database: str, name: str) -> Function:
        above = place(database)
        return self._function(Name(above.catalog, above.database, function=name.lower()))

    def get_all_functions(self) -> GetAllFunctionsResponse:
        return GetAllFunctionsResponse([self._function(name) for name in self._functions()])

    def _functions(self) -> Iterator[Name]:
        for catalog in self.past.catalogs():
            for database in self.past.databases(catalog):
                for one in self.past.functions(Name(catalog, database)):
                    yield Name(catalog, database, function=one)

    def _database(self, name: Name) -> Database:
        said = self.past.said(name) if name.database else None
        if said is None:
            raise NoSuchObjectException(f"{name} database not found")
        return objects.database(name, said, self.lost)

    def _function(self, name: Name) -> Function:
        said = self.past.said(name)
        if said is None:
            raise NoSuchObjectException(f"{name} function not found")
        return objects.function(name, said, self.lost)
