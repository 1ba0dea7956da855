"""A metastore in memory with the rules of Hive 3.1.3 for what fits together: restores without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from hive_metastore.ttypes import (
    AlreadyExistsException,
    HiveObjectType,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
)

# What holds the columns of a request that adds constraints, and what its name is called.
_ADDED = {
    "add_primary_key": ("primaryKeyCols", "pk_name"),
    "add_unique_constraint": ("uniqueConstraintCols", "uk_name"),
    "add_not_null_constraint": ("notNullConstraintCols", "nn_name"),
    "add_default_constraint": ("defaultConstraintCols", "dc_name"),
    "add_check_constraint": ("checkConstraintCols", "dc_name"),
}
Key = tuple[str, str]


class StrictMetastore:
    """Tables by database and name. Every change that Hive's code or its tables refuse raises Hive's error."""

    def __init__(self) -> None:
        self.databases: dict[str, Any] = {}
        self.tables: dict[Key, Any] = {}
        self.partitions: dict[Key, dict[str, Any]] = {}
        # By their name: the table, the method that made it, and its rows.
        self.constraints: dict[str, tuple[Key, str, list[Any]]] = {}
        self.grants: list[Any] = []

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the interface."""
        if method in _ADDED:
            field, called = _ADDED[method]
            return self._add(method, getattr(arguments[0], field), called)
        own: Callable[..., Any] = getattr(self, method)
        return own(*arguments)

    def get_database(self, name: str) -> Any:
        return _found(self.databases, name)

    def create_database(self, made: Any) -> None:
        if made.name in self.databases:
            raise AlreadyExistsException(made.name)
        self.databases[made.name] = made

    def get_table(self, database: str, name: str) -> Any:
        return deepcopy(_found(self.tables, (database, name)))

    def create_table_with_environment_context(self, made: Any, _: Any) -> None:
        key = made.dbName, made.tableName
        self.get_database(made.dbName)
        if key in self.tables:
            raise AlreadyExistsException(made.tableName)
        _check(made)
        self.tables[key], self.partitions[key] = made, {}

    def alter_table_with_environment_context(self, database: str, name: str, made: Any, _: Any) -> None:
        there = self.get_table(database, name)
        _check(made)
        if _names(there.partitionKeys) != _names(made.partitionKeys):
            raise MetaException("partition keys can not be changed.")
        gone = set(_types(there)) - set(_types(made))
        for word, (key, _, rows) in self.constraints.items():
            if key == (database, name) and gone & {_column(row) for row in rows}:
                raise MetaException(f"{word} is on a column that is dropped")
        self.tables[database, name] = made

    def drop_table(self, database: str, name: str, _: bool) -> None:
        _found(self.tables, (database, name))
        del self.tables[database, name], self.partitions[database, name]
        self.constraints = {
            word: one
            for word, one in self.constraints.items()
            if one[0] != (database, name) and not any(_parent(row) == (database, name) for row in one[2])
        }

    def get_partitions_by_names(self, database: str, name: str, names: Iterable[str]) -> list[Any]:
        _found(self.tables, (database, name))
        there = self.partitions[database, name]
        return [there[one] for one in names if one in there]

    def add_partitions(self, made: Iterable[Any]) -> None:
        for one in made:
            table = self.get_table(one.dbName, one.tableName)
            keys = _names(table.partitionKeys)
            if len(one.values) != len(keys):
                raise MetaException(f"{one.values} for {keys}")
            partition = "/".join(f"{key}={value}" for key, value in zip(keys, one.values, strict=True))
            there = self.partitions[one.dbName, one.tableName]
            if partition in there:
                raise AlreadyExistsException(partition)
            there[partition] = one

    def alter_partitions(self, database: str, name: str, made: Iterable[Any]) -> None:
        there = self.partitions[database, name]
        for one in made:
            [partition] = [word for word, old in there.items() if old.values == one.values]
            there[partition] = one

    def drop_partition_by_name(self, database: str, name: str, partition: str, _: bool) -> None:
        _found(self.partitions[database, name], partition)
        del self.partitions[database, name][partition]

    def grant_privileges(self, bag: Any) -> None:
        for one in bag.privileges:
            if one.hiveObject.objectType == HiveObjectType.COLUMN:
                table = self.get_table(one.hiveObject.dbName, one.hiveObject.objectName)
                if one.hiveObject.columnName not in _types(table):
                    raise InvalidObjectException(f"{one.hiveObject.columnName} is no column")
            self.grants.append(one)

    def revoke_privileges(self, bag: Any) -> None:
        for one in bag.privileges:
            self.grants.remove(one)

    def drop_constraint(self, request: Any) -> None:
        _found(self.constraints, request.constraintname)
        del self.constraints[request.constraintname]

    def add_foreign_key(self, request: Any) -> None:
        rows: dict[str, list[Any]] = {}
        for row in request.foreignKeyCols:
            rows.setdefault(row.fk_name, []).append(row)
        for name, some in rows.items():
            first = some[0]
            types = _types(self.get_table(first.fktable_db, first.fktable_name))
            parent = first.pktable_db, first.pktable_name
            self.get_table(*parent)
            wanted = [(row.pkcolumn_name, types.get(row.fkcolumn_name)) for row in some]
            if wanted not in self._keys(parent):
                raise MetaException(f"Foreign key references {wanted} but no corresponding key exists")
            self._keep(name, (first.fktable_db, first.fktable_name), "add_foreign_key", some)

    def _keys(self, table: Key) -> list[list[tuple[str, str | None]]]:
        types = _types(self.tables[table])
        return [
            [
                (row.column_name, types.get(row.column_name))
                for row in sorted(rows, key=lambda row: row.key_seq)
            ]
            for key, method, rows in self.constraints.values()
            if key == table and method in {"add_primary_key", "add_unique_constraint"}
        ]

    def _add(self, method: str, rows: Iterable[Any], called: str) -> None:
        found: dict[str, list[Any]] = {}
        for row in rows:
            found.setdefault(getattr(row, called), []).append(row)
        for name, some in found.items():
            table = some[0].table_db, some[0].table_name
            if method == "add_primary_key" and any(
                one[:2] == (table, method) for one in self.constraints.values()
            ):
                raise MetaException(f"Primary key already exists for: {table}")
            self._keep(name, table, method, some)

    def _keep(self, name: str, table: Key, method: str, rows: list[Any]) -> None:
        columns = _types(self.get_table(*table))
        for row in rows:
            if _column(row) not in columns:
                raise InvalidObjectException(f"Parent column not found: {_column(row)}")
        if name in self.constraints:
            raise InvalidObjectException(f"Constraint name already exists: {name}")
        self.constraints[name] = table, method, rows


def _found(held: Any, key: Any) -> Any:
    if key not in held:
        raise NoSuchObjectException(str(key))
    return held[key]


def _check(table: Any) -> None:
    """Raise what Hive raises of a table, or what no client could read."""
    listed = [*_names(table.sd.cols), *_names(table.partitionKeys)]
    if len(listed) != len({name.lower() for name in listed}):
        raise InvalidObjectException(f"a column twice: {listed}")
    columns = set(_names(table.sd.cols))
    for some in (
        table.sd.bucketCols,
        [one.col for one in table.sd.sortCols],
        table.sd.skewedInfo.skewedColNames,
    ):
        if set(some) - columns:
            raise InvalidObjectException(f"{sorted(set(some) - columns)} are no columns")
    schema = (table.parameters or {}).get("spark.sql.sources.schema")
    if schema is not None and schema != ",".join(f"{one.name}:{one.type}" for one in table.sd.cols):
        raise InvalidObjectException(f"{schema} is of other columns")


def _names(columns: Any) -> list[str]:
    return [one.name for one in columns or ()]


def _types(table: Any) -> dict[str, str]:
    return {one.name: one.type for one in (*table.sd.cols, *(table.partitionKeys or ()))}


def _column(row: Any) -> str:
    return str(getattr(row, "column_name", None) or row.fkcolumn_name)


def _parent(row: Any) -> Key | None:
    return (row.pktable_db, row.pktable_name) if hasattr(row, "pktable_db") else None
