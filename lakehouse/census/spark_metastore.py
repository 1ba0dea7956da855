"""The metastore of a Spark session, by the client in Spark's JVM: a host needs no other.

One call returns many tables and one more serializes them, so that the number of calls does not grow with
columns and parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from lakehouse.census.contents import TableName
from lakehouse.census.java_errors import Py4JJavaError, java_reason
from lakehouse.census.metastore import HivePartition, MetastoreError, Table, parse_partitions, parse_tables

# Of one call.
_TABLES, _PARTITIONS = 300, 1000
# Of one table.
MOST_PARTITIONS = 200_000
_DROPPED = "UnknownDBException"


class SparkMetastore:
    """The metastore of a Spark session, by the client in its JVM; MetastoreError for a rejected call."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        hive = jvm.org.apache.hadoop.hive
        self._jvm, self._api = jvm, hive.metastore.api
        conf_class = getattr(jvm.java.lang, "Class").forName("org.apache.hadoop.hive.conf.HiveConf")  # noqa: B009
        conf = hive.conf.HiveConf(spark._jsc.hadoopConfiguration(), conf_class)
        try:
            self._client = hive.metastore.HiveMetaStoreClient(conf)
        except Py4JJavaError as error:
            raise MetastoreError(f"the metastore does not answer: {java_reason(error)}") from None
        protocol = getattr(jvm.org.apache.thrift.protocol, "TSimpleJSONProtocol$Factory")
        self._serializer = jvm.org.apache.thrift.TSerializer(protocol())

    def tables(self, without: Sequence[str] = ()) -> list[Table]:
        """Return all tables except those of the databases `without`; Hive tables with their partitions."""
        listed: list[Table] = []
        for database in self._call("getAllDatabases"):
            if database in without:
                continue
            try:
                listed += self._tables(database)
            except MetastoreError as error:
                # A database that was dropped in the meantime has no tables.
                if _DROPPED not in str(error):
                    raise
        return [self._with_partitions(table) for table in listed]

    def _tables(self, database: str) -> list[Table]:
        listed: list[Table] = []
        names = list(self._call("getAllTables", database))
        for start in range(0, len(names), _TABLES):
            batch = self._list(names[start : start + _TABLES])
            rows = self._call("getTableObjectsByName", database, batch)
            listed += parse_tables(self._text(self._api.GetTablesResult(rows)))
        return listed

    def _with_partitions(self, table: Table) -> Table:
        if table.format != "hive" or not table.partition_keys:
            return table
        try:
            return replace(table, partitions=tuple(self._partitions(table.name)))
        except MetastoreError as error:
            return replace(table, failed=str(error))

    def _partitions(self, name: TableName) -> Iterator[HivePartition]:
        names = list(self._call("listPartitionNames", name.database, name.table, -1))
        if len(names) > MOST_PARTITIONS:
            raise MetastoreError(f"it has more than {MOST_PARTITIONS} partitions")
        for start in range(0, len(names), _PARTITIONS):
            batch = self._list(names[start : start + _PARTITIONS])
            rows = self._call("getPartitionsByNames", name.database, name.table, batch)
            yield from parse_partitions(self._text(self._api.PartitionListComposingSpec(rows)))

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._client, method)(*arguments)
        except Py4JJavaError as error:
            raise MetastoreError(f"{method}: {java_reason(error)}") from None

    def _text(self, value: Any) -> str:
        return str(self._serializer.toString(value))

    def _list(self, names: Sequence[str]) -> Any:
        listed = self._jvm.java.util.ArrayList()
        for name in names:
            listed.add(name)
        return listed
