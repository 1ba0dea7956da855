"""Answers about partitions."""

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
    """What a table that is partitioned is divided into."""

    def get_partition(self, database: str, name: str, values: list[str]) -> Partition:
        return self._by_values(table(database, name), values)

    def get_partition_with_auth(
        self, database: str, name: str, values: list[str], _: Any, __: Any
    ) -> Partition:
        return self.get_partition(database, name, values)

    def get_partition_req(self, request: GetPartitionRequest) -> GetPartitionResponse:
        own = table(request.dbName, request.tblName, request.catName)
        return GetPartitionResponse(self._by_values(own, request.partVals))

    def get_partition_by_name(self, database: str, name: str, partition: str) -> Partition:
        own = table(database, name)
        self.table(own)
        if partition not in self.past.partitions(own):
            return self._by_values(own, partition_names.values(partition))
        return self._made(own, partition)

    def get_partition_names(self, database: str, name: str, count: int) -> list[str]:
        return first(self._names(table(database, name)), count)

    def get_partition_names_req(self, request: PartitionsByExprRequest) -> list[str]:
        if request.expr:
            raise self._expression()
        return first(self._names(table(request.dbName, request.tblName, request.catName)), request.maxParts)

    def get_partitions(self, database: str, name: str, count: int) -> list[Partition]:
        own = table(database, name)
        return self._several(own, first(self._names(own), count))

    def get_partitions_with_auth(
        self, database: str, name: str, count: int, _: Any, __: Any
    ) -> list[Partition]:
        return self.get_partitions(database, name, count)

    def get_partitions_req(self, request: PartitionsRequest) -> PartitionsResponse:
        own = table(request.dbName, request.tblName, request.catName)
        return PartitionsResponse(self._several(own, first(self._names(own), request.maxParts)))

    def get_partition_names_ps(self, database: str, name: str, values: list[str], count: int) -> list[str]:
        return first(self._beginning(table(database, name), values), count)

    def get_partition_names_ps_req(self, request: GetPartitionNamesPsRequest) -> GetPartitionNamesPsResponse:
        own = table(request.dbName, request.tblName, request.catName)
        found = self._beginning(own, request.partValues or [])
        return GetPartitionNamesPsResponse(first(found, request.maxParts))

    def get_partitions_ps(self, database: str, name: str, values: list[str], count: int) -> list[Partition]:
        own = table(database, name)
        return self._several(own, first(self._beginning(own, values), count))

    def get_partitions_ps_with_auth(
        self, database: str, name: str, values: list[str], count: int, _: Any, __: Any
    ) -> list[Partition]:
        return self.get_partitions_ps(database, name, values, count)

    def get_partitions_ps_with_auth_req(
        self, request: GetPartitionsPsWithAuthRequest
    ) -> GetPartitionsPsWithAuthResponse:
        own = table(request.dbName, request.tblName, request.catName)
        found = first(self._beginning(own, request.partVals or []), request.maxParts)
        return GetPartitionsPsWithAuthResponse(self._several(own, found))

    def get_partitions_by_names(self, database: str, name: str, names: list[str]) -> list[Partition]:
        own = table(database, name)
        self.table(own)
        return self._several(own, names)

    def get_partitions_by_names_req(self, request: GetPartitionsByNamesRequest) -> GetPartitionsByNamesResult:
        found = self.get_partitions_by_names(request.db_name, request.tbl_name, request.names or [])
        return GetPartitionsByNamesResult(found)

    def get_partitions_by_filter(
        self, database: str, name: str, condition: str, count: int
    ) -> list[Partition]:
        own = table(database, name)
        return self._several(own, first(self._wanted(own, condition), count))

    def get_num_partitions_by_filter(self, database: str, name: str, condition: str) -> int:
        return len(self._wanted(table(database, name), condition))

    def get_partitions_by_expr(self, _: Any) -> Any:
        raise self._expression()

    def partition_name_to_vals(self, partition: str) -> list[str]:
        return partition_names.values(partition) if partition else []

    def partition_name_to_spec(self, partition: str) -> dict[str, str]:
        return partition_names.spec(partition) if partition else {}

    def partition_name_has_valid_characters(self, *_: Any) -> bool:
        # A pattern of a server's own forbids some; there is none.
        return True

    def _names(self, own: Name) -> list[str]:
        self.table(own)
        return list(self.past.partitions(own))

    def _beginning(self, own: Name, values: list[str]) -> list[str]:
        return [
            one for one in self._names(own) if partition_names.matches(partition_names.values(one), values)
        ]

    def _wanted(self, own: Name, condition: str) -> list[str]:
        keys = self._keys(own)
        if not condition.strip():
            return self._names(own)
        try:
            wanted = filters.parse(condition, keys)
            return [
                one
                for one in self._names(own)
                if filters.wanted(wanted, list(keys), partition_names.values(one))
            ]
        except filters.NotUnderstoodError as error:
            raise MetaException(f"the condition {condition!r} on {own}: {error}") from None

    def _keys(self, own: Name) -> dict[str, str]:
        return {one["name"]: one["type"] for one in self.table(own).get("partition_keys", ())}

    def _by_values(self, own: Name, values: list[str]) -> Partition:
        keys = self._keys(own)
        if len(keys) != len(values):
            given = counted(len(values), "value was given", "values were given")
            raise MetaException(f"{own} has {counted(len(keys), 'partition key')}, and {given}")
        return self._made(own, partition_names.name(keys, values))

    def _several(self, own: Name, names: Iterable[str]) -> list[Partition]:
        """Return those partitions that are there."""
        known = self.past.partitions(own)
        wanted = [Name(own.catalog, own.database, own.table, one) for one in names if one in known]
        documents = [said for one in wanted if (said := self.past.partition(one)) is not None]
        located = self.locations.partitions(self.table(own), documents)
        return [
            objects.partition(name, document, self.lost, self.past.volatile_partition(name))
            for name, document in zip(wanted, located, strict=True)
        ]

    def _made(self, own: Name, partition: str) -> Partition:
        for one in self._several(own, [partition]):
            return one
        name = Name(own.catalog, own.database, own.table, partition)
        raise NoSuchObjectException(f"{name} partition not found")

    def _expression(self) -> MetaException:
        return MetaException(
            f"the commit {self.entry.short} cannot be asked with a serialized expression of Hive;"
            " get_partitions_by_filter takes conditions on partition keys"
        )
