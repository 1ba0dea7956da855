"""A table by its names and its place, and the databases of a run: one per family of formats."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from hive_metastore.ttypes import NoSuchObjectException

from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import Format
from suites.testbed.metastore import Connection
from suites.testbed.namenode import NameNode


@dataclass(frozen=True)
class Table:
    """A table by its names and its folder in HDFS (`path`; `uri` with scheme and nameservice).

    As text it is the full name for Spark's SQL.
    """

    format: Format
    database: str
    name: str
    path: str
    uri: str

    @property
    def short(self) -> str:
        """Name without the catalog, which is what the metastore and Iceberg's procedures know."""
        return f"{self.database}.{self.name}"

    def full(self, engine: str) -> str:
        """Name for an engine's SQL; without a catalog where the engine has none for the format."""
        catalog = self.format.catalogs.get(engine)
        return f"{catalog}.{self.short}" if catalog else self.short

    def __str__(self) -> str:
        return self.full("spark")

    def statement(self, template: str, **values: object) -> str:
        """Fill a statement of the format with this table's names."""
        return template.format(table=self, short=self.short, **values)


def location(endpoints: Endpoints, database: str, name: str) -> str:
    """Return the URI of a table's folder; empty for a view. NoSuchObjectException where there is no table."""
    with Connection(endpoints.metastore, endpoints.users["hdfs"]) as client:
        storage = client.get_table(database, name).sd
    return str(storage.serdeInfo.parameters.get("path") or storage.location or "")


@dataclass(frozen=True)
class Databases:
    """The databases of a run of a suite; each of `formats` stands for its family."""

    suite: str
    run: str
    formats: tuple[Format, ...]
    endpoints: Endpoints
    namenode: NameNode

    def name(self, fmt: Format) -> str:
        """Return the name of a format's database, without a catalog."""
        return f"{self.suite}_{fmt.family}_{self.run}"

    def path(self, fmt: Format) -> str:
        """Return the folder of a format's database in HDFS."""
        return f"{self.endpoints.root}/{self._below(fmt)}"

    def uri(self, fmt: Format) -> str:
        """Return the folder with scheme and nameservice."""
        return f"{self.endpoints.warehouse}/{self._below(fmt)}"

    def table(self, fmt: Format, name: str) -> Table:
        """Return a table of that name, which need not exist."""
        return Table(fmt, self.name(fmt), name, f"{self.path(fmt)}/{name}", f"{self.uri(fmt)}/{name}")

    def found(self, table: Table) -> Table:
        """Return a table with its real folder: engines put a word of their own into its name."""
        try:
            uri = location(self.endpoints, table.database, table.name)
        except NoSuchObjectException:
            return table
        return replace(table, path=urlsplit(uri).path, uri=uri) if uri else table

    def create(self, spark: Spark) -> None:
        """Make the databases."""
        for fmt in self.formats:
            spark.sql(f"CREATE DATABASE {fmt.catalogs['spark']}.{self.name(fmt)} LOCATION '{self.uri(fmt)}'")

    def left(self) -> list[str]:
        """Return what is in these databases, as `database.table`."""
        names = map(self.name, self.formats)
        with Connection(self.endpoints.metastore, self.endpoints.users["hdfs"]) as client:
            return [f"{name}.{table}" for name in names for table in client.get_all_tables(name)]

    def remove(self, table: Table) -> None:
        """Take a table, if there is one, out of the metastore, and its folder out of HDFS.

        No engine is asked: what a test left may be more than it can read, and Spark makes a job of it.
        """
        path = self.found(table).path
        with (
            Connection(self.endpoints.metastore, self.endpoints.users["hdfs"]) as client,
            suppress(NoSuchObjectException),
        ):
            client.drop_table(table.database, table.name, False)
        self.namenode.remove(path)

    def drop(self) -> None:
        """Drop the databases with every table and file that is left in them, by any maker."""
        user = self.endpoints.users["spark"]
        with Connection(self.endpoints.metastore, user, (self.endpoints.group,)) as client:
            for fmt in self.formats:
                # These errors are immutable, and the fixture that calls this could not pass them on.
                with suppress(NoSuchObjectException):
                    client.drop_database(self.name(fmt), deleteData=False, cascade=True)
        for fmt in self.formats:
            self.namenode.remove(self.path(fmt))

    def _below(self, fmt: Format) -> str:
        return f"{fmt.folder}/{self.name(fmt)}"
