"""Handlers of calls about partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hive_metastore.ttypes import (
    GetPartitionNamesPsRequest,
    GetPartitionNamesPsResponse,
    GetPartitionRequest,
    GetPartitionResponse,
    GetPartitionsByNamesRequest,
    GetPartitionsByNamesResult,
    GetPartitionsPsWithAuthRequest,
    GetPartitionsPsWithAuthResponse,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsByExprRequest,
    PartitionsRequest,
    PartitionsResponse,
)

from lakehouse.catalog import filters, partition_names
from lakehouse.catalog.bindings import objects
from lakehouse.catalog.names import Name
from lakehouse.catalog.served.request import Request, first, table
from plugins.module_utils.lakehouse.counting import counted


class Partitions(Request):
    """The calls about partitions of a table."""

    def get_partition(self, database: str, name: str, values: list[str]) -> Partition:
        return self._by_values(table(database, name), values)

    def get_partition_with_auth(
        self, database: str, name: str, values: list[str], _: Any, __: Any
    ) -> Partition:
        return self.get_partition(database, name, values)

    def get_partition_req(self, request: GetPartitionRequest) -> GetPartitionResponse:
        table_name = table(request.dbName, request.tblName, request.catName)
        return GetPartitionResponse(self._by_values(table_name, request.partVals))

    def get_partition_by_name(self, database: str, name: str, partition: str) -> Partition:
        table_name = table(database, name)
        self.table(table_name)
        if partition not in self.reader.partitions(table_name):
            return self._by_values(table_name, partition_names.values(partition))
        return self._one_partition(table_name, partition)

    def get_partition_names(self, database: str, name: str, count: int) -> list[str]:
        return first(self._names(table(database, name)), count)

    def get_partition_names_req(self, request: PartitionsByExprRequest) -> list[str]:
        if request.expr:
            raise self._expression()
        return first(self._names(table(request.dbName, request.tblName, request.catName)), request.maxParts)

    def get_partitions(self, database: str, name: str, count: int) -> list[Partition]:
        table_name = table(database, name)
        return self._several(table_name, first(self._names(table_name), count))

    def get_partitions_with_auth(
        self, database: str, name: str, count: int, _: Any, __: Any
    ) -> list[Partition]:
        return self.get_partitions(database, name, count)

    def get_partitions_req(self, request: PartitionsRequest) -> PartitionsResponse:
        table_name = table(request.dbName, request.tblName, request.catName)
        return PartitionsResponse(self._several(table_name, first(self._names(table_name), request.maxParts)))

    def get_partition_names_ps(self, database: str, name: str, values: list[str], count: int) -> list[str]:
        return first(self._beginning(table(database, name), values), count)

    def get_partition_names_ps_req(self, request: GetPartitionNamesPsRequest) -> GetPartitionNamesPsResponse:
        table_name = table(request.dbName, request.tblName, request.catName)
        names = self._beginning(table_name, request.partValues or [])
        return GetPartitionNamesPsResponse(first(names, request.maxParts))

    def get_partitions_ps(self, database: str, name: str, values: list[str], count: int) -> list[Partition]:
        table_name = table(database, name)
        return self._several(table_name, first(self._beginning(table_name, values), count))

    def get_partitions_ps_with_auth(
        self, database: str, name: str, values: list[str], count: int, _: Any, __: Any
    ) -> list[Partition]:
        return self.get_partitions_ps(database, name, values, count)

    def get_partitions_ps_with_auth_req(
        self, request: GetPartitionsPsWithAuthRequest
    ) -> GetPartitionsPsWithAuthResponse:
        table_name = table(request.dbName, request.tblName, request.catName)
        names = first(self._beginning(table_name, request.partVals or []), request.maxParts)
        return GetPartitionsPsWithAuthResponse(self._several(table_name, names))

    def get_partitions_by_names(self, database: str, name: str, names: list[str]) -> list[Partition]:
        table_name = table(database, name)
        self.table(table_name)
        return self._several(table_name, names)

    def get_partitions_by_names_req(self, request: GetPartitionsByNamesRequest) -> GetPartitionsByNamesResult:
        partitions = self.get_partitions_by_names(request.db_name, request.tbl_name, request.names or [])
        return GetPartitionsByNamesResult(partitions)

    def get_partitions_by_filter(
        self, database: str, name: str, condition: str, count: int
    ) -> list[Partition]:
        table_name = table(database, name)
        return self._several(table_name, first(self._matching(table_name, condition), count))

    def get_num_partitions_by_filter(self, database: str, name: str, condition: str) -> int:
        return len(self._matching(table(database, name), condition))

    def get_partitions_by_expr(self, _: Any) -> Any:
        raise self._expression()

    def partition_name_to_vals(self, partition: str) -> list[str]:
        return partition_names.values(partition) if partition else []

    def partition_name_to_spec(self, partition: str) -> dict[str, str]:
        return partition_names.spec(partition) if partition else {}

    def partition_name_has_valid_characters(self, *_: Any) -> bool:
        # The setting of a server that forbids characters is not part of a commit.
        return True

    def _names(self, table_name: Name) -> list[str]:
        self.table(table_name)
        return list(self.reader.partitions(table_name))

    def _beginning(self, table_name: Name, prefix: list[str]) -> list[str]:
        return [
            partition
            for partition in self._names(table_name)
            if partition_names.matches(partition_names.values(partition), prefix)
        ]

    def _matching(self, table_name: Name, condition: str) -> list[str]:
        keys = self._keys(table_name)
        if not condition.strip():
            return self._names(table_name)
        try:
            parsed = filters.parse(condition, keys)
            return [
                partition
                for partition in self._names(table_name)
                if filters.matches(parsed, list(keys), partition_names.values(partition))
            ]
        except filters.NotUnderstoodError as error:
            raise MetaException(f"the condition {condition!r} on {table_name}: {error}") from None

    def _keys(self, table_name: Name) -> dict[str, str]:
        return {key["name"]: key["type"] for key in self.table(table_name).get("partition_keys", ())}

    def _by_values(self, table_name: Name, values: list[str]) -> Partition:
        keys = self._keys(table_name)
        if len(keys) != len(values):
            values_given = counted(len(values), "value was given", "values were given")
            raise MetaException(f"{table_name} has {counted(len(keys), 'partition key')}, and {values_given}")
        return self._one_partition(table_name, partition_names.name(keys, values))

    def _several(self, table_name: Name, names: Iterable[str]) -> list[Partition]:
        """Return the partitions of these names, as far as they exist."""
        existing = self.reader.partitions(table_name)
        full_names = [
            Name(table_name.catalog, table_name.database, table_name.table, name)
            for name in names
            if name in existing
        ]
        documents = [document for name in full_names if (document := self.reader.partition(name)) is not None]
        located = self.locations.partitions(self.table(table_name), documents)
        return [
            objects.partition(name, document, self.report_field, self.reader.volatile_partition(name))
            for name, document in zip(full_names, located, strict=True)
        ]

    def _one_partition(self, table_name: Name, partition: str) -> Partition:
        for converted in self._several(table_name, [partition]):
            return converted
        name = Name(table_name.catalog, table_name.database, table_name.table, partition)
        raise NoSuchObjectException(f"{name} partition not found")

    def _expression(self) -> MetaException:
        return MetaException(
            f"the commit {self.entry.short} cannot be asked with a serialized expression of Hive;"
            " get_partitions_by_filter takes conditions on partition keys"
        )
