"""The statements of each engine for a step: SQL, or calls of the Python clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from deltalake import Field
from deltalake.schema import PrimitiveType
from pyiceberg.expressions import BooleanExpression, EqualTo, IsNaN, IsNull, NotEqualTo, NotNull
from pyiceberg.types import (
    DateType,
    DoubleType,
    IcebergType,
    IntegerType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from suites.matrix.cross.data_types import DAY, DOUBLE, INSTANT, INT, LOCAL, TEXT, DataType
from suites.matrix.cross.dialects import DIALECTS, arrow_type
from suites.matrix.cross.engines import FLINK, SPARK, TRINO
from suites.matrix.model.state import (
    DIFFERENT,
    EQUAL,
    HIVE,
    IS_NAN,
    KEY,
    NOT_NULL,
    NULL,
    Condition,
    Table,
    Value,
    Values,
    python,
)
from suites.matrix.model.steps import (
    ADD_COLUMN,
    CREATE,
    DELETE,
    DROP,
    DROP_COLUMN,
    INSERT,
    MERGE,
    PARTITION,
    RENAME,
    RENAME_COLUMN,
    UPDATE,
    Step,
)
from suites.testbed.formats import DELTA, Format

# A table with this property may lie in another's folder: the metastore's guard lets it.
SHARED = "'lakehouse.shared-location' = 'true'"
_QUOTES = {SPARK: "`", TRINO: '"', FLINK: "`"}
_NOT_A_NUMBER = {SPARK: "isnan({})", TRINO: "is_nan({})", FLINK: "CAST({} AS STRING) = 'NaN'"}
_MAPPING = "ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
_ICEBERG_TYPES: Mapping[DataType, IcebergType] = {
    INT: IntegerType(), TEXT: StringType(), DOUBLE: DoubleType(), DAY: DateType(), LOCAL: TimestampType(),
    INSTANT: TimestamptzType(),
}  # fmt: skip
_DELTA_TYPES: Mapping[DataType, str] = {
    INT: "integer", TEXT: "string", DOUBLE: "double", DAY: "date", LOCAL: "timestamp_ntz",
    INSTANT: "timestamp",
}  # fmt: skip


def quoted(engine: str, name: str) -> str:
    """Return a name as an engine's SQL quotes it."""
    quote = _QUOTES[engine]
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"


def type_name(engine: str, kind: DataType, fmt: Format) -> str:
    """Return a type as an engine spells it for tables of a format."""
    if kind is LOCAL and fmt in HIVE:
        # Spark has no TIMESTAMP_NTZ in Hive's formats, Flink no other precision.
        return DIALECTS[SPARK].type(INSTANT) if engine == SPARK else _HIVE_MOMENT[engine]
    return DIALECTS[engine].type(kind)


_HIVE_MOMENT = {TRINO: "TIMESTAMP(6)", FLINK: "TIMESTAMP(9)"}


def literal(engine: str, value: Value, kind: DataType, fmt: Format) -> str:
    """Return a value as an engine spells it; each is cast, so that no engine guesses its type."""
    # A session says the zone where the type does not: all are in UTC.
    zone = DIALECTS[engine].zone if kind is INSTANT else ""
    text = "NULL" if value is None else DIALECTS[engine].text(f"{value}{zone}")
    return f"CAST({text} AS {type_name(engine, kind, fmt)})"


def condition(engine: str, table: Table, predicate: Condition) -> str:
    """Return a condition as an engine spells it behind WHERE."""
    name = quoted(engine, predicate.column)
    if predicate.operator == IS_NAN:
        return _NOT_A_NUMBER[engine].format(name)
    if predicate.operator in {NULL, NOT_NULL}:
        return f"{name} {predicate.operator.upper()}"
    value = literal(engine, predicate.value, table.column(predicate.column).kind, table.format)
    return f"{name} {'=' if predicate.operator == EQUAL else '<>'} {value}"


def sql(step: Step, table: Table, name: str, to: str, *, shared: bool = False) -> list[str]:
    """Return the statements by which an SQL engine carries out a step.

    `table` is the one before the step, or the one that it makes; `name` and `to` are full names.
    """
    if step.action == CREATE:
        return [f"CREATE TABLE {name} {_definition(step.engine, table, shared=shared)}"]
    if step.action == RENAME:
        return [f"ALTER TABLE {name} RENAME TO {to}"]
    return _SQL[step.action](step, table, name)


def copy(table: Table, name: str, target: str) -> str:
    """Return Spark's statement that copies a Hive table into a new one of Iceberg."""
    folders = ", ".join(quoted(SPARK, column) for column in table.partitions)
    partitioned = f" PARTITIONED BY ({folders})" if folders else ""
    return f"CREATE TABLE {target} USING iceberg{partitioned} AS SELECT * FROM {name}"


def query(engine: str, table: Table, name: str, predicate: Condition | None = None) -> str:
    """Return the query for all columns of a table, or for the keys of the rows of a condition."""
    if predicate:
        return f"SELECT {KEY} FROM {name} WHERE {condition(engine, table, predicate)}"
    return f"SELECT {', '.join(quoted(engine, column) for column in table.names)} FROM {name}"


def arrow(table: Table, rows: Iterable[Values]) -> pa.Table:
    """Return rows of the model as Arrow, with the table's columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    return pa.table({
        column.name: pa.array([python(value, column.kind) for value in values], arrow_type(column.kind))
        for column, values in zip(table.columns, columns, strict=True)
    })  # fmt: skip


def pyiceberg_condition(predicate: Condition) -> BooleanExpression:
    """Return a condition as PyIceberg has it; moments as ISO 8601 spells them."""
    values = (predicate.value,) if predicate.operator in {EQUAL, DIFFERENT} else ()
    expression: BooleanExpression = _EXPRESSIONS[predicate.operator](predicate.column, *values)
    return expression


# Their types know of fields by name alone, and of no plain values.
_EXPRESSIONS: Mapping[str, Any] = {
    EQUAL: EqualTo, DIFFERENT: NotEqualTo, NULL: IsNull, NOT_NULL: NotNull, IS_NAN: IsNaN,
}  # fmt: skip


def pyiceberg(step: Step, table: Table, lake: Any, name: str, to: str) -> None:
    """Carry out a step with PyIceberg; names are those of database and table."""
    _PYICEBERG[step.action](step, table, lake.iceberg, name, to)


def delta_rs_condition(table: Table, predicate: Condition) -> str:
    """Return a condition as DataFusion spells it."""
    name = _double(predicate.column)
    if predicate.operator == IS_NAN:
        return f"isnan({name})"
    if predicate.operator in {NULL, NOT_NULL}:
        return f"{name} {predicate.operator}"
    value = _delta_literal(predicate.value, table.column(predicate.column).kind)
    return f"{name} {'=' if predicate.operator == EQUAL else '!='} {value}"


def delta_rs(step: Step, table: Table, lake: Any, name: str, _to: str) -> None:
    """Carry out a step with delta-rs; the name is that of database and table."""
    _DELTA_RS[step.action](step, table, lake, name)


def _drop(step: Step, _: Table, name: str) -> list[str]:
    # Without the word Spark forgets an Iceberg table and keeps its files.
    return [f"DROP TABLE {name}{' PURGE' if step.engine == SPARK else ''}"]


def _insert(step: Step, table: Table, name: str) -> list[str]:
    return [f"INSERT INTO {name} VALUES {_rows(step.engine, table, step.rows)}"]


def _update(step: Step, table: Table, name: str) -> list[str]:
    value = literal(step.engine, step.value, table.column(step.column).kind, table.format)
    change = f"{quoted(step.engine, step.column)} = {value}"
    return [f"UPDATE {name} SET {change} WHERE {_where(step, table)}"]


def _delete(step: Step, table: Table, name: str) -> list[str]:
    return [f"DELETE FROM {name} WHERE {_where(step, table)}"]


def _add_column(step: Step, table: Table, name: str) -> list[str]:
    [column] = step.columns
    typed = f"{quoted(step.engine, column.name)} {type_name(step.engine, column.kind, table.format)}"
    word = {SPARK: f"ADD COLUMNS ({typed})", TRINO: f"ADD COLUMN {typed}", FLINK: f"ADD {typed}"}
    return [f"ALTER TABLE {name} {word[step.engine]}"]


def _drop_column(step: Step, table: Table, name: str) -> list[str]:
    word = "DROP" if step.engine == FLINK else "DROP COLUMN"
    return [*_mapped(table, name), f"ALTER TABLE {name} {word} {quoted(step.engine, step.column)}"]


def _rename_column(step: Step, table: Table, name: str) -> list[str]:
    word = "RENAME" if step.engine == FLINK else "RENAME COLUMN"
    names = f"{quoted(step.engine, step.column)} TO {quoted(step.engine, step.to)}"
    return [*_mapped(table, name), f"ALTER TABLE {name} {word} {names}"]


def _partition(step: Step, table: Table, name: str) -> list[str]:
    change = f"ADD PARTITION FIELD {quoted(SPARK, step.partition)}"
    if step.engine == TRINO:
        change = f"SET PROPERTIES partitioning = {_listing((*table.partitions, step.partition), TRINO)}"
    return [f"ALTER TABLE {name} {change}"]


def _definition(engine: str, table: Table, *, shared: bool) -> str:
    fmt = table.format
    folders = table.partitions if fmt in HIVE else ()
    typed = {
        column.name: f"{quoted(engine, column.name)} {type_name(engine, column.kind, fmt)}"
        for column in table.columns
    }
    # Spark names the columns that are folders of a Hive table apart from the others.
    apart = folders if engine == SPARK else ()
    columns = f"({', '.join(text for name, text in typed.items() if name not in apart)})"
    clauses = []
    if engine == SPARK and fmt not in HIVE:
        clauses.append(f"USING {fmt}")
    if table.partitions and engine != TRINO:
        parts = [typed[name] if name in apart else quoted(engine, name) for name in table.partitions]
        clauses.append(f"PARTITIONED BY ({', '.join(parts)})")
    if fmt in HIVE:
        clauses.append(_storage(engine, table))
    elif engine == TRINO and table.partitions:
        clauses.append(f"WITH (partitioning = {_listing(table.partitions, TRINO)})")
    if shared and engine == SPARK:
        clauses.append(f"TBLPROPERTIES ({SHARED})")
    return " ".join([columns, *clauses])


def _storage(engine: str, table: Table) -> str:
    word = table.format.prefix
    if engine == SPARK:
        return f"STORED AS {word.upper()}"
    if engine == FLINK:
        return f"WITH ('connector' = 'hive', 'hive.storage.file-format' = '{word}')"
    folders = f", partitioned_by = {_listing(table.partitions)}" if table.partitions else ""
    return f"WITH (format = '{word.upper()}'{folders})"


def _listing(names: Iterable[str], engine: str = "") -> str:
    """Return names as Trino's properties want them: those of Iceberg's transforms are quoted."""
    texts = [DIALECTS[TRINO].text(quoted(engine, name) if engine else name) for name in names]
    return f"ARRAY[{', '.join(texts)}]"


def _rows(engine: str, table: Table, rows: Iterable[Values]) -> str:
    kinds = [column.kind for column in table.columns]
    literals = (
        ", ".join(literal(engine, value, kind, table.format) for value, kind in zip(row, kinds, strict=True))
        for row in rows
    )
    return ", ".join(f"({row})" for row in literals)


def _merge(step: Step, table: Table, name: str) -> list[str]:
    columns = [quoted(step.engine, column) for column in table.names]
    rows = _rows(step.engine, table, step.rows)
    source = f"(SELECT * FROM (VALUES {rows}) AS x ({', '.join(columns)}))"
    changes = ", ".join(f"{column} = fresh.{column}" for column in columns[1:])
    values = ", ".join(f"fresh.{column}" for column in columns)
    return [
        f"MERGE INTO {name} AS present USING {source} AS fresh ON present.{columns[0]} = fresh.{columns[0]}"
        f" WHEN MATCHED THEN UPDATE SET {changes}"
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    ]


def _where(step: Step, table: Table) -> str:
    assert step.condition
    return condition(step.engine, table, step.condition)


def _mapped(table: Table, name: str) -> list[str]:
    return [_MAPPING.format(name)] if table.format is DELTA and not table.mapped else []


_SQL: Mapping[str, Callable[[Step, Table, str], list[str]]] = {
    DROP: _drop,
    INSERT: _insert,
    MERGE: _merge,
    UPDATE: _update,
    DELETE: _delete,
    ADD_COLUMN: _add_column,
    DROP_COLUMN: _drop_column,
    RENAME_COLUMN: _rename_column,
    PARTITION: _partition,
}


def _pyiceberg_create(step: Step, table: Table, catalog: Any, name: str, _: str) -> None:
    iceberg_table = catalog.create_table(name, schema=arrow(table, ()).schema)
    if step.partition:
        iceberg_table.update_spec().add_identity(step.partition).commit()


def _pyiceberg_append(step: Step, table: Table, catalog: Any, name: str, _: str) -> None:
    catalog.load_table(name).append(arrow(table, step.rows))


def _pyiceberg_upsert(step: Step, table: Table, catalog: Any, name: str, _: str) -> None:
    catalog.load_table(name).upsert(arrow(table, step.rows), join_cols=[KEY])


def _pyiceberg_delete(step: Step, table: Table, catalog: Any, name: str, _: str) -> None:
    assert step.condition
    catalog.load_table(name).delete(pyiceberg_condition(iso(table, step.condition)))


def _pyiceberg_add(step: Step, _: Table, catalog: Any, name: str, __: str) -> None:
    [column] = step.columns
    catalog.load_table(name).update_schema().add_column((column.name,), _ICEBERG_TYPES[column.kind]).commit()


def _pyiceberg_drop_column(step: Step, _: Table, catalog: Any, name: str, __: str) -> None:
    catalog.load_table(name).update_schema().delete_column((step.column,)).commit()


def _pyiceberg_rename_column(step: Step, _: Table, catalog: Any, name: str, __: str) -> None:
    catalog.load_table(name).update_schema().rename_column((step.column,), step.to).commit()


def _pyiceberg_partition(step: Step, _: Table, catalog: Any, name: str, __: str) -> None:
    catalog.load_table(name).update_spec().add_identity(step.partition).commit()


_PYICEBERG: Mapping[str, Callable[[Step, Table, Any, str, str], None]] = {
    CREATE: _pyiceberg_create,
    RENAME: lambda _, __, catalog, name, to: catalog.rename_table(name, to),
    DROP: lambda _, __, catalog, name, ___: catalog.drop_table(name),
    INSERT: _pyiceberg_append,
    MERGE: _pyiceberg_upsert,
    DELETE: _pyiceberg_delete,
    ADD_COLUMN: _pyiceberg_add,
    DROP_COLUMN: _pyiceberg_drop_column,
    RENAME_COLUMN: _pyiceberg_rename_column,
    PARTITION: _pyiceberg_partition,
}


def iso(table: Table, predicate: Condition) -> Condition:
    """Return a condition whose value PyIceberg reads: a number as one, a moment with a T."""
    kind = table.column(predicate.column).kind
    value: Any = predicate.value
    if value is not None and kind in {LOCAL, INSTANT}:
        value = str(value).replace(" ", "T") + ("+00:00" if kind is INSTANT else "")
    elif value is not None and kind is DOUBLE:
        value = float(value)
    return Condition(predicate.column, predicate.operator, value)


def _double(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _delta_literal(value: Value, kind: DataType) -> str:
    if value is None:
        return "NULL"
    text = "'" + str(value).replace("'", "''") + "'"
    if kind in {LOCAL, INSTANT}:
        # DataFusion's own TIMESTAMP has nanoseconds, which end in 2262.
        zone = 'Some("UTC")' if kind is INSTANT else "None"
        return f"arrow_cast({text}, 'Timestamp(Microsecond, {zone})')"
    return text if kind is TEXT else f"CAST({text} AS {_DATAFUSION[kind]})"


_DATAFUSION: Mapping[DataType, str] = {INT: "INT", DOUBLE: "DOUBLE", DAY: "DATE"}


def _delta_create(_: Step, table: Table, lake: Any, name: str) -> None:
    lake.create(f"{DELTA}.{name}", arrow(table, ()))


def _delta_append(step: Step, table: Table, lake: Any, name: str) -> None:
    lake.append(f"{DELTA}.{name}", arrow(table, step.rows))


def _delta_merge(step: Step, table: Table, lake: Any, name: str) -> None:
    merging = lake.delta(name).merge(
        arrow(table, step.rows), f"present.{KEY} = fresh.{KEY}", source_alias="fresh", target_alias="present"
    )
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def _delta_update(step: Step, table: Table, lake: Any, name: str) -> None:
    assert step.condition
    change = {_double(step.column): _delta_literal(step.value, table.column(step.column).kind)}
    lake.delta(name).update(change, predicate=delta_rs_condition(table, step.condition))


def _delta_delete(step: Step, table: Table, lake: Any, name: str) -> None:
    assert step.condition
    lake.delta(name).delete(delta_rs_condition(table, step.condition))


def _delta_add(step: Step, _: Table, lake: Any, name: str) -> None:
    [column] = step.columns
    lake.delta(name).alter.add_columns(Field(column.name, PrimitiveType(_DELTA_TYPES[column.kind])))


_DELTA_RS: Mapping[str, Callable[[Step, Table, Any, str], None]] = {
    CREATE: _delta_create,
    INSERT: _delta_append,
    MERGE: _delta_merge,
    UPDATE: _delta_update,
    DELETE: _delta_delete,
    ADD_COLUMN: _delta_add,
}
