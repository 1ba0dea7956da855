"""Idempotent methods of the metastore, and the variants of a method in other releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hive_metastore import ttypes

# Prefixes of methods that only read, except for those of `_CHANGES`.
_READS = ("get", "list_", "find_", "show_", "partition_name_", "isPartition", "aliveSince")
_CHANGES = frozenset(
    {"find_next_compact", "find_next_compact2", "get_delegation_token", "get_lock_materialization_rebuild"}
)


def repeatable(method: str) -> bool:
    """Return whether a method may be sent twice, since it only reads."""
    return method.startswith(_READS) and method not in _CHANGES


def _same_arguments(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def _same_answer(answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class Variant:
    """A method in place of another one, with the conversion of the arguments and of the answer."""

    method: str
    arguments: Callable[..., tuple[Any, ...]] = _same_arguments
    answer: Callable[[Any], Any] = _same_answer


def _tables_request(database: str, names: list[str], catalog: str | None = None) -> tuple[Any, ...]:
    # Hive refuses tables with transactions to a client that does not claim to know them.
    capabilities = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])
    return (
        ttypes.GetTablesRequest(dbName=database, tblNames=names, capabilities=capabilities, catName=catalog),
    )


# The newest first: Hive 4 has dropped some of the older ones, and Hive 2 has none of the newer.
_VARIANTS: dict[str, tuple[Variant, ...]] = {
    "get_table": (
        Variant(
            "get_table_req",
            lambda database, table: (ttypes.GetTableRequest(dbName=database, tblName=table),),
            lambda answer: answer.table,
        ),
        Variant("get_table"),
    ),
    "get_table_objects_by_name": (
        Variant("get_table_objects_by_name_req", _tables_request, lambda answer: answer.tables),
        Variant("get_table_objects_by_name", lambda database, names, _=None: (database, names)),
    ),
    "get_partitions_by_names": (
        Variant(
            "get_partitions_by_names_req",
            lambda database, table, names: (
                ttypes.GetPartitionsByNamesRequest(db_name=database, tbl_name=table, names=names),
            ),
            lambda answer: answer.partitions,
        ),
        Variant("get_partitions_by_names"),
    ),
}


def variants(method: str) -> tuple[Variant, ...]:
    """Return the variants of a method in the order in which they are tried."""
    return _VARIANTS.get(method, (Variant(method),))
