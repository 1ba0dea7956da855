"""Handlers of calls about column statistics."""

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
    """The calls about column statistics, for query planners."""

    def get_table_column_statistics(self, database: str, name: str, column: str) -> ColumnStatistics:
        table_name = table(database, name)
        self.table(table_name)
        return self._of_one(table_name, self.reader.volatile(table_name), column)

    def get_table_statistics_req(self, request: TableStatsRequest) -> TableStatsResult:
        table_name = table(request.dbName, request.tblName, request.catName)
        self.table(table_name)
        return TableStatsResult(
            statistics.columns(
                table_name, self.reader.volatile(table_name), request.colNames, self.report_field
            )
        )

    def get_partition_column_statistics(
        self, database: str, name: str, partition: str, column: str
    ) -> ColumnStatistics:
        table_name = table(database, name)
        self.table(table_name)
        partition_name = Name(table_name.catalog, table_name.database, table_name.table, partition)
        return self._of_one(partition_name, self.reader.volatile_partition(partition_name), column)

    def get_partitions_statistics_req(self, request: PartitionsStatsRequest) -> PartitionsStatsResult:
        table_name = table(request.dbName, request.tblName, request.catName)
        self.table(table_name)
        by_partition = {}
        for partition in request.partNames:
            partition_name = Name(table_name.catalog, table_name.database, table_name.table, partition)
            volatile = self.reader.volatile_partition(partition_name)
            if columns := statistics.columns(partition_name, volatile, request.colNames, self.report_field):
                by_partition[partition] = columns
        return PartitionsStatsResult(by_partition)

    def get_aggr_stats_for(self, request: PartitionsStatsRequest) -> AggrStats:
        # Aggregates over partitions are an estimate of the server, and not part of a commit.
        self.table(table(request.dbName, request.tblName, request.catName))
        return AggrStats(colStats=[], partsFound=0)

    def _of_one(self, name: Name, volatile: Document | None, column: str) -> ColumnStatistics:
        columns = statistics.columns(name, volatile, [column], self.report_field)
        if not columns:
            raise NoSuchObjectException(f"{name} has no statistics of column {column}")
        return statistics.described(name, volatile, columns)
