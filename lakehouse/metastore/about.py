"""Which databases and tables a call is about: what it is kept under, and what a change makes outdated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What a call reads; a cache has a size for each."""

    DATABASE = "database"
    TABLE = "table"
    PARTITION = "partition"
    STATISTICS = "statistics"
    FUNCTION = "function"
    NAMES = "names"


class Name(NamedTuple):
    """A table, every table of a database (no table), or everything (no database either)."""

    database: str = ""
    table: str = ""

    def __str__(self) -> str:
        return ".".join(filter(None, self)) or "everything"

    def meets(self, other: Name) -> bool:
        """Tell whether two names have something in common."""
        return all(not mine or not theirs or mine == theirs for mine, theirs in zip(self, other, strict=True))


EVERYTHING = Name()
_About = Callable[..., Iterable[Name]]


def named(database: str | None, table: str | None = "") -> Name:
    """Return a name as Hive compares them: in small letters, and the same in all catalogs.

    A database may stand with its catalog, as `@hive#sales`.
    """
    return Name((database or "").rpartition("#")[2].lower(), (table or "").lower())


def _two(database: str, table: str, *_: Any) -> Iterable[Name]:
    yield named(database, table)


def _one(database: str, *_: Any) -> Iterable[Name]:
    yield named(database)


def _all(*_: Any) -> Iterable[Name]:
    yield EVERYTHING


def _none(*_: Any) -> Iterable[Name]:
    return ()


def _database(database: Any) -> Iterable[Name]:
    yield named(database.name)


def _renamed(database: str, new: Any) -> Iterable[Name]:
    # It may have another name from now on.
    return {named(database), named(new.name)}


def _function(function: Any) -> Iterable[Name]:
    yield named(function.dbName)


def _table(table: Any, *_: Any) -> Iterable[Name]:
    yield named(table.dbName, table.tableName)


def _tables(tables: Iterable[Any], *_: Any) -> Iterable[Name]:
    return {named(one.dbName, one.tableName) for one in tables}


def _altered(database: str, table: str, new: Any, *_: Any) -> Iterable[Name]:
    return {named(database, table), named(new.dbName, new.tableName)}


def _added(request: Any) -> Iterable[Name]:
    yield named(request.dbName, request.tblName)


def _counted(statistics: Any) -> Iterable[Name]:
    yield named(statistics.statsDesc.dbName, statistics.statsDesc.tableName)


def _methods(about: _About, *methods: str) -> dict[str, _About]:
    return dict.fromkeys(methods, about)


# What a single metastore keeps for its own clients: nothing of it is kept here, or makes sense elsewhere.
_SESSIONS = (
    *("abort_txn", "abort_txns", "allocate_table_write_ids", "check_lock", "commit_txn", "heartbeat"),
    *("get_delegation_token", "renew_delegation_token", "cancel_delegation_token"),
    *("heartbeat_txn_range", "lock", "open_txns", "set_ugi", "setMetaConf", "unlock"),
)
_READS: Mapping[str, tuple[Kind, _About]] = {
    "get_all_databases": (Kind.NAMES, _all),
    "get_all_tables": (Kind.NAMES, _one),
    "get_database": (Kind.DATABASE, _one),
    "get_databases": (Kind.NAMES, _all),
    "get_function": (Kind.FUNCTION, _one),
    "get_functions": (Kind.NAMES, _one),
    "get_partition": (Kind.PARTITION, _two),
    "get_partition_by_name": (Kind.PARTITION, _two),
    "get_partition_column_statistics": (Kind.STATISTICS, _two),
    "get_partition_names": (Kind.NAMES, _two),
    "get_table": (Kind.TABLE, _two),
    "get_table_column_statistics": (Kind.STATISTICS, _two),
    "get_tables": (Kind.NAMES, _one),
    "get_tables_by_type": (Kind.NAMES, _one),
}
# Of any other change it is not known: it may be about everything.
_CHANGES: Mapping[str, _About] = {
    **_methods(_none, *_SESSIONS),
    **_methods(_database, "create_database"),
    **_methods(_renamed, "alter_database"),
    **_methods(_one, "drop_database", "drop_function", "alter_function"),
    **_methods(_function, "create_function"),
    **_methods(_table, "create_table", "create_table_with_environment_context"),
    **_methods(_table, "create_table_with_constraints"),
    **_methods(_altered, "alter_table", "alter_table_with_environment_context", "alter_table_with_cascade"),
    **_methods(_two, "drop_table", "drop_table_with_environment_context", "truncate_table"),
    **_methods(_table, "add_partition", "add_partition_with_environment_context"),
    **_methods(_tables, "add_partitions"),
    **_methods(_added, "add_partitions_req"),
    **_methods(_two, "append_partition", "append_partition_by_name"),
    **_methods(_two, "alter_partition", "alter_partition_with_environment_context"),
    **_methods(_two, "alter_partitions", "alter_partitions_with_environment_context", "rename_partition"),
    **_methods(_two, "drop_partition", "drop_partition_with_environment_context"),
    **_methods(_two, "drop_partition_by_name", "drop_partition_by_name_with_environment_context"),
    **_methods(_two, "delete_table_column_statistics", "delete_partition_column_statistics"),
    **_methods(_counted, "update_table_column_statistics", "update_partition_column_statistics"),
}


def kind(method: str) -> Kind | None:
    """Return what a method reads; None of one whose answers are not kept."""
    return _READS[method][0] if method in _READS else None


def read(method: str, arguments: tuple[Any, ...]) -> Name:
    """Return what a call reads, of a method that has a kind."""
    [name] = _READS[method][1](*arguments)
    return name


def changed(method: str, arguments: tuple[Any, ...]) -> frozenset[Name]:
    """Return what is another one after a change; EVERYTHING is among it where that is not known."""
    names: _About = _CHANGES.get(method, _all)
    try:
        return frozenset(names(*arguments))
    except (AttributeError, TypeError):
        # It is asked when a change has ended, and must not hide how: it may be arguments without a name.
        return frozenset({EVERYTHING})


def of_one_metastore(method: str) -> bool:
    """Tell whether a method is about what a single metastore keeps for its callers, such as locks."""
    return method in _SESSIONS
