"""Answers about statistics of columns: those that the commit has."""

from __future__ import annotations

from hive_metastore.ttypes import (
    AggrStats,
    ColumnStatistics,
    NoSuchObjectException,
    PartitionsStatsRequest,
    PartitionsStatsResult,
    TableStatsRequest,
    TableStatsResult,
)

from lakehouse.catalog.bindings import statistics
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name
from lakehouse.catalog.served.request import Request, table


class Statistics(Request):
    """What planners of queries ask."""

    def get_table_column_statistics(self, database: str, name: str, column: str) -> ColumnStatistics:
        own = table(database, name)
        self.table(own)
        return self._of_one(own, self.past.volatile(own), column)

    def get_table_statistics_req(self, request: TableStatsRequest) -> TableStatsResult:
        own = table(request.dbName, request.tblName, request.catName)
        self.table(own)
        return TableStatsResult(statistics.columns(own, self.past.volatile(own), request.colNames, self.lost))

    def get_partition_column_statistics(
        self, database: str, name: str, partition: str, column: str
    ) -> ColumnStatistics:
        own = table(database, name)
        self.table(own)
        named = Name(own.catalog, own.database, own.table, partition)
        return self._of_one(named, self.past.volatile_partition(named), column)

    def get_partitions_statistics_req(self, request: PartitionsStatsRequest) -> PartitionsStatsResult:
        own = table(request.dbName, request.tblName, request.catName)
        self.table(own)
        found = {}
        for partition in request.partNames:
            named = Name(own.catalog, own.database, own.table, partition)
            said = self.past.volatile_partition(named)
            if listed := statistics.columns(named, said, request.colNames, self.lost):
                found[partition] = listed
        return PartitionsStatsResult(found)

    def get_aggr_stats_for(self, request: PartitionsStatsRequest) -> AggrStats:
        # Sums over partitions are a server's estimate, and nothing that was in the metastore.
        self.table(table(request.dbName, request.tblName, request.catName))
        return AggrStats(colStats=[], partsFound=0)

    def _of_one(self, name: Name, said: Document | None, column: str) -> ColumnStatistics:
        found = statistics.columns(name, said, [column], self.lost)
        if not found:
            raise NoSuchObjectException(f"{name} has no statistics of column {column}")
        return statistics.described(name, said, found)
