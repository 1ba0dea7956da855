"""Constraints of a table as Thrift has them: a type of its own for each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hive_metastore.ttypes import (
    SQLCheckConstraint,
    SQLDefaultConstraint,
    SQLForeignKey,
    SQLNotNullConstraint,
    SQLPrimaryKey,
    SQLUniqueConstraint,
)

from lakehouse.catalog.bindings.field_reader import Lost, Taken
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name

# As KEY_CONSTRAINTS numbers them.
_PRIMARY, _FOREIGN, _UNIQUE, _NOT_NULL, _DEFAULT, _CHECK = range(6)
_ENABLE, _VALIDATE, _RELY = 4, 2, 1


@dataclass
class Constraints:
    """All constraints of a table, by kind."""

    primary_keys: list[SQLPrimaryKey] = field(default_factory=list)
    foreign_keys: list[SQLForeignKey] = field(default_factory=list)
    unique: list[SQLUniqueConstraint] = field(default_factory=list)
    not_null: list[SQLNotNullConstraint] = field(default_factory=list)
    default: list[SQLDefaultConstraint] = field(default_factory=list)
    check: list[SQLCheckConstraint] = field(default_factory=list)


def constraints(name: Name, said: Document, lost: Lost) -> Constraints:
    """Return the constraints that a table's document has; those of a key's columns in the key's order."""
    made = Constraints()
    listed = sorted(said.get("constraints") or (), key=lambda one: (one["name"], one.get("position", 0)))
    for one in listed:
        fields = Taken(one, f"{name} constraint {one['name']}", lost)
        kind, references = fields.take("type", _PRIMARY), fields.take("references")
        own = {
            "table_db": name.database,
            "table_name": name.table,
            "column_name": fields.take("column"),
            "catName": name.catalog,
            **_flags(fields.take("flags", 0)),
        }
        called, position = fields.take("name"), fields.take("position", 0)
        if kind == _PRIMARY:
            made.primary_keys.append(SQLPrimaryKey(key_seq=position, pk_name=called, **own))
        elif kind == _FOREIGN:
            made.foreign_keys.append(_foreign(own, called, position, references or [None] * 4, fields))
        elif kind == _UNIQUE:
            made.unique.append(SQLUniqueConstraint(key_seq=position, uk_name=called, **own))
        elif kind == _NOT_NULL:
            made.not_null.append(SQLNotNullConstraint(nn_name=called, **own))
        elif kind == _DEFAULT:
            value = fields.take("value")
            made.default.append(SQLDefaultConstraint(default_value=value, dc_name=called, **own))
        elif kind == _CHECK:
            made.check.append(
                SQLCheckConstraint(check_expression=fields.take("value"), dc_name=called, **own)
            )
        else:
            lost(fields.name, f"type {kind}")
        fields.end()
    return made


def _foreign(own: dict[str, Any], called: str, position: int, to: list[Any], fields: Taken) -> SQLForeignKey:
    flags = {key: value for key, value in own.items() if key.endswith("_cstr")}
    catalog, database, table, column = to
    if catalog not in {None, own["catName"]}:
        fields.lost(fields.name, f"references of the catalog {catalog}")
    return SQLForeignKey(
        pktable_db=database,
        pktable_name=table,
        pkcolumn_name=column,
        fktable_db=own["table_db"],
        fktable_name=own["table_name"],
        fkcolumn_name=own["column_name"],
        key_seq=position,
        update_rule=fields.take("on_update", 0),
        delete_rule=fields.take("on_delete", 0),
        fk_name=called,
        catName=own["catName"],
        **flags,
    )


def _flags(number: int) -> dict[str, bool]:
    return dict(_each(number))


def _each(number: int) -> Iterator[tuple[str, bool]]:
    for word, bit in (("enable", _ENABLE), ("validate", _VALIDATE), ("rely", _RELY)):
        yield f"{word}_cstr", bool(number & bit)
