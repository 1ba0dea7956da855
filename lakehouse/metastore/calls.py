"""Which methods may be repeated, and which another release of the metastore has in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hive_metastore import ttypes

# A method that begins so changes nothing, but for those below it.
_READS = ("get", "list_", "find_", "show_", "partition_name_", "isPartition", "aliveSince")
_CHANGES = frozenset(
    {"find_next_compact", "find_next_compact2", "get_delegation_token", "get_lock_materialization_rebuild"}
)


def repeatable(method: str) -> bool:
    """Tell whether a method may be sent twice: it asks, and changes nothing."""
    return method.startswith(_READS) and method not in _CHANGES


def _given(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def _as_it_is(answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class Variant:
    """A method, with what makes its arguments of those of the method it stands for, and its answer."""

    method: str
    arguments: Callable[..., tuple[Any, ...]] = _given
    answer: Callable[[Any], Any] = _as_it_is


# The younger is asked first: Hive 4 has some of the older ones no longer, Hive 2 none of the younger.
_VARIANTS: dict[str, tuple[Variant, ...]] = {
    "get_table": (
        Variant(
            "get_table_req",
            lambda database, table: (ttypes.GetTableRequest(dbName=database, tblName=table),),
            lambda answer: answer.table,
        ),
        Variant("get_table"),
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
    """Return the methods that do what one does, in the order in which they are tried."""
    return _VARIANTS.get(method, (Variant(method),))
