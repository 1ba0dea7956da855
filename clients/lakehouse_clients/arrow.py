"""Arrow tables that every library here understands."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with views, which not every reader knows, replaced by what they show; also inside."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([plain_field(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(plain_field(kind.key_field), plain_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(plain_field(kind.value_field))
    return kind


def plain_field(field: pa.Field) -> pa.Field:
    """Return the field with a plain type."""
    return field.with_type(plain_type(field.type))


def plain(data: Any) -> pa.Table:
    """Return what speaks Arrow's C interface as a table without views."""
    table = pa.table(data)
    return table.cast(pa.schema([plain_field(field) for field in table.schema]))
