"""The databases of a run of the matrix: one per family of formats, dropped with all that is left in them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from hive_metastore.ttypes import NoSuchObjectException

from testbed.endpoints import Endpoints
from testbed.formats import DELTA, HIVE_PARQUET, ICEBERG, Format
from testbed.lake import Lake
from testbed.metastore import Connection
from testbed.namenode import NameNode

# One format stands for its family: both Hive formats share a database.
_FAMILIES = (ICEBERG, DELTA, HIVE_PARQUET)


@dataclass(frozen=True)
class MatrixTable:
    """A table by its names and its folder in HDFS (`path`; `uri` with scheme and nameservice)."""

    format: Format
    database: str
    name: str
    path: str
    uri: str

    @property
    def short(self) -> str:
        """Name without a catalog."""
        return f"{self.database}.{self.name}"

    def full(self, engine: str = "spark") -> str:
        """Name for an engine's SQL; without a catalog where the engine has none for the format."""
        catalog = self.format.catalogs.get(engine)
        return f"{catalog}.{self.short}" if catalog else self.short

    def __str__(self) -> str:
        return self.full()


@dataclass(frozen=True)
class MatrixDatabases:
    """The databases of this run by family; `iceberg`, `delta` and `hive` are what a test needs to know."""

    run: str
    root: str
    warehouse: str

    @property
    def iceberg(self) -> str:
        """Name of the database of Iceberg tables."""
        return f"matrix_iceberg_{self.run}"

    @property
    def delta(self) -> str:
        """Name of the database of Delta tables."""
        return f"matrix_delta_{self.run}"

    @property
    def hive(self) -> str:
        """Name of the database of Hive tables."""
        return f"matrix_hive_{self.run}"

    def names(self) -> Mapping[Format, str]:
        """Name of the database by the format that stands for its family."""
        return {fmt: f"matrix_{fmt.family}_{self.run}" for fmt in _FAMILIES}

    def table(self, fmt: Format, name: str) -> MatrixTable:
        """Return a table of that name, which need not exist."""
        database = f"matrix_{fmt.family}_{self.run}"
        below = f"{fmt.folder}/{database}/{name}"
        return MatrixTable(fmt, database, name, f"{self.root}/{below}", f"{self.warehouse}/{below}")

    def create(self, lake: Lake) -> None:
        """Make the databases."""
        for fmt, name in self.names().items():
            catalog = fmt.catalogs["spark"]
            lake.sql(f"CREATE DATABASE {catalog}.{name} LOCATION '{self.warehouse}/{fmt.folder}/{name}'")

    def drop(self, endpoints: Endpoints, namenode: NameNode) -> None:
        """Remove the databases with every table and file that is left in them, whoever made it."""
        user = endpoints.users["spark"]
        with Connection(endpoints.metastore, user, (endpoints.group,)) as client:
            for name in self.names().values():
                # These errors are immutable, and the fixture that calls this could not pass them on.
                with suppress(NoSuchObjectException):
                    client.drop_database(name, deleteData=False, cascade=True)
        for fmt, name in self.names().items():
            folder = f"{self.root}/{fmt.folder}/{name}"
            namenode.webhdfs("DELETE", "DELETE", folder, recursive="true")
