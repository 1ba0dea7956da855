"""Convert the constraints of a table to Thrift, which has a type for each kind."""

from __future__ import annotations

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

from lakehouse.catalog.bindings.field_reader import FieldReader, ReportField
from lakehouse.catalog.documents import Document
from lakehouse.catalog.names import Name

# As KEY_CONSTRAINTS numbers them.
PRIMARY, FOREIGN, UNIQUE, NOT_NULL, DEFAULT, CHECK = range(6)
# The bits of a row's flags, by the name of Thrift's field.
FLAGS = {"enable_cstr": 4, "validate_cstr": 2, "rely_cstr": 1}


@dataclass
class Constraints:
    """All constraints of a table, by kind."""

    primary_keys: list[SQLPrimaryKey] = field(default_factory=list)
    foreign_keys: list[SQLForeignKey] = field(default_factory=list)
    unique: list[SQLUniqueConstraint] = field(default_factory=list)
    not_null: list[SQLNotNullConstraint] = field(default_factory=list)
    default: list[SQLDefaultConstraint] = field(default_factory=list)
    check: list[SQLCheckConstraint] = field(default_factory=list)


def constraints(name: Name, document: Document, report_field: ReportField) -> Constraints:
    """Convert the constraints of a table's document; the columns of a key are in the key's order."""
    converted = Constraints()
    rows = sorted(document.get("constraints") or (), key=lambda row: (row["name"], row.get("position", 0)))
    for row in rows:
        fields = FieldReader(row, f"{name} constraint {row['name']}", report_field)
        kind, references = fields.take("type", PRIMARY), fields.take("references")
        common = {
            "table_db": name.database,
            "table_name": name.table,
            "column_name": fields.take("column"),
            "catName": name.catalog,
            **_flags(fields.take("flags", 0)),
        }
        label, position = fields.take("name"), fields.take("position", 0)
        if kind == PRIMARY:
            converted.primary_keys.append(SQLPrimaryKey(key_seq=position, pk_name=label, **common))
        elif kind == FOREIGN:
            converted.foreign_keys.append(_foreign(common, label, position, references or [None] * 4, fields))
        elif kind == UNIQUE:
            converted.unique.append(SQLUniqueConstraint(key_seq=position, uk_name=label, **common))
        elif kind == NOT_NULL:
            converted.not_null.append(SQLNotNullConstraint(nn_name=label, **common))
        elif kind == DEFAULT:
            value = fields.take("value")
            converted.default.append(SQLDefaultConstraint(default_value=value, dc_name=label, **common))
        elif kind == CHECK:
            converted.check.append(
                SQLCheckConstraint(check_expression=fields.take("value"), dc_name=label, **common)
            )
        else:
            report_field(fields.name, f"type {kind}")
        fields.end()
    return converted


def _foreign(
    common: dict[str, Any], name: str, position: int, references: list[Any], fields: FieldReader
) -> SQLForeignKey:
    flags = {key: value for key, value in common.items() if key.endswith("_cstr")}
    catalog, database, table, column = references
    if catalog not in {None, common["catName"]}:
        fields.report_field(fields.name, f"references of the catalog {catalog}")
    return SQLForeignKey(
        pktable_db=database,
        pktable_name=table,
        pkcolumn_name=column,
        fktable_db=common["table_db"],
        fktable_name=common["table_name"],
        fkcolumn_name=common["column_name"],
        key_seq=position,
        update_rule=fields.take("on_update", 0),
        delete_rule=fields.take("on_delete", 0),
        fk_name=name,
        catName=common["catName"],
        **flags,
    )


def _flags(number: int) -> dict[str, bool]:
    return {field: bool(number & bit) for field, bit in FLAGS.items()}
