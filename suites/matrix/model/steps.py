"""The operations of a sequence: their preconditions, and their effects on the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from suites.matrix import cells
from suites.matrix.cells import Expected
from suites.matrix.cross.data_types import INSTANT, INT, LOCAL
from suites.matrix.cross.engines import DELTA_RS, FLINK, PYICEBERG, SPARK, TRINO
from suites.matrix.model.state import HIVE, KEY, Column, Condition, Model, Table, Value, Values
from suites.testbed.formats import BY_NAME, DELTA, HIVE_ORC, HIVE_PARQUET, ICEBERG, Format

# The others read through PyIceberg and delta-rs.
ENGINES = (SPARK, TRINO, FLINK, PYICEBERG, DELTA_RS)

CREATE, RENAME, DROP, MIGRATE = "create", "rename", "drop", "migrate"
ADD_COLUMN, DROP_COLUMN, RENAME_COLUMN = "add column", "drop column", "rename column"
PARTITION = "partition evolution"
INSERT, MERGE, UPDATE, DELETE = "insert", "merge", "update", "delete"
COMPACT, EXPIRE, REMOVE_ORPHANS, ROLLBACK = "compact", "expire", "remove orphans", "rollback"
FIND = "find"
# What removes or moves files: afterwards each table is read, not only the one that was meant.
REMOVES_FILES = frozenset({DROP, RENAME, MIGRATE, COMPACT, EXPIRE, REMOVE_ORPHANS})
CHANGES_ROWS = frozenset({INSERT, MERGE, UPDATE, DELETE})
CHANGES_COLUMNS = frozenset({CREATE, MIGRATE, ADD_COLUMN, DROP_COLUMN, RENAME_COLUMN})

# What no cell of the matrix declares: who renames a table, and who copies a Hive table into an Iceberg one.
_BESIDE_THE_CELLS: Mapping[tuple[str, Format], tuple[str, ...]] = {
    (RENAME, ICEBERG): (SPARK, TRINO, FLINK, PYICEBERG),
    (RENAME, DELTA): (SPARK,),
    (RENAME, HIVE_PARQUET): (SPARK, TRINO, FLINK),
    (RENAME, HIVE_ORC): (SPARK, TRINO, FLINK),
    (MIGRATE, HIVE_PARQUET): (SPARK,),
    (MIGRATE, HIVE_ORC): (SPARK,),
}
# Cells that work as a rewrite of the whole table by the client's own code, or by a change of its settings.
_NO_STATEMENT = frozenset({
    (UPDATE, ICEBERG, PYICEBERG), (EXPIRE, DELTA, DELTA_RS), (PARTITION, DELTA, SPARK),
    (PARTITION, DELTA, DELTA_RS), (RENAME_COLUMN, DELTA, DELTA_RS), (DROP_COLUMN, DELTA, DELTA_RS),
})  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One operation: who does what to which table; the rest is what the action needs.

    `columns` are those of CREATE, with `partition` one of them, or the one that is added. `column` is the one
    that is dropped, renamed (`to`), or updated to `value`. `to` is the table's new name for RENAME. For FIND
    each reader is asked, and `engine` is empty.
    """

    action: str
    engine: str
    table: str
    format: str = ""
    columns: tuple[Column, ...] = ()
    partition: str = ""
    rows: tuple[Values, ...] = ()
    column: str = ""
    to: str = ""
    value: Value = None
    condition: Condition | None = None


Sequence = tuple[Step, ...]


@cache
def _working() -> frozenset[tuple[str, Format, str]]:
    return frozenset(
        (cell.operation.name, cell.format, cell.engine)
        for cell in cells.load()
        if cell.expected is Expected.WORKS and cell.engine in ENGINES
    )


def engines(action: str, fmt: Format) -> tuple[str, ...]:
    """Return the engines that carry out an action on tables of a format, as `cells.yml` declares."""
    if declared := _BESIDE_THE_CELLS.get((action, fmt)):
        return declared
    works = _working()
    return tuple(
        engine
        for engine in ENGINES
        if (action, fmt, engine) in works and (action, fmt, engine) not in _NO_STATEMENT
    )


def readers(fmt: Format) -> tuple[str, ...]:
    """Return the engines that read tables of a format."""
    return engines("read", fmt)


def permitted(step: Step, model: Model) -> bool:
    """Tell whether a step makes sense in the state of the model: its names exist, its keys are new."""
    if step.action == CREATE:
        return step.table not in model.tables and _is_table(step)
    table = model.tables.get(step.table)
    if table is None:
        return False
    if step.action != FIND and step.engine not in engines(step.action, table.format):
        return False
    judge = _PERMITTED.get(step.action)
    return judge is None or judge(step, table, model)


def apply(step: Step, model: Model) -> Model:
    """Return the model after a step."""
    if step.action == CREATE:
        fmt = BY_NAME[step.format]
        partitions = (step.partition,) if step.partition else ()
        return model.having(step.table, Table(fmt, fmt, step.engine, step.columns, partitions))
    table = model.tables[step.table]
    if step.action == DROP:
        return model.without(step.table)
    if step.action == RENAME:
        return model.without(step.table).having(step.to, replace(table, past=None))
    if step.action == FIND:
        return model
    after = _CHANGES[step.action](step, table) if step.action in _CHANGES else table
    # What changes no row may leave no version behind.
    changed = step.action in CHANGES_ROWS and after.rows != table.rows
    return model.having(step.table, replace(after, past=(table.rows or None) if changed else None))


def states(sequence: Iterable[Step]) -> list[Model]:
    """Return the model before the first step and after each; ValueError for a step that is not permitted."""
    models = [Model()]
    for place, step in enumerate(sequence, 1):
        if not permitted(step, models[-1]):
            raise ValueError(f"step {place} is not possible here: {step}")
        models.append(apply(step, models[-1]))
    return models


def is_possible(sequence: Iterable[Step]) -> bool:
    """Tell whether each step is permitted after those before it."""
    try:
        states(sequence)
    except ValueError:
        return False
    return True


def _is_table(step: Step) -> bool:
    names = [column.name for column in step.columns]
    return (
        step.engine in engines(CREATE, BY_NAME[step.format])
        and step.columns[:1] == (Column(KEY, INT),)
        and len(names) > 1
        and len({name.lower() for name in names}) == len(names)
        and (not step.partition or step.partition in names[1:])
    )


def _has_new_column(step: Step, table: Table, _: Model) -> bool:
    return step.columns[0].name.lower() not in {name.lower() for name in table.names}


def _has_column_to_drop(step: Step, table: Table, _: Model) -> bool:
    # A column that has ever partitioned the table is kept: Trino refuses to drop it.
    can_drop = step.column in table.names[1:] and step.column not in table.partitions
    return can_drop and len(set(table.names[1:]) - set(table.partitions)) > 1


def _has_column_to_rename(step: Step, table: Table, _: Model) -> bool:
    return step.column in table.names[1:] and step.to.lower() not in {name.lower() for name in table.names}


def _has_column_for_partitions(step: Step, table: Table, _: Model) -> bool:
    return step.partition in table.names[1:] and step.partition not in table.partitions


def _has_rows(step: Step, table: Table, _: Model) -> bool:
    keys = [row[0] for row in step.rows]
    fitting = all(len(row) == len(table.columns) for row in step.rows)
    fresh = step.action == MERGE or not set(keys) & set(table.rows)
    return bool(keys) and len(set(keys)) == len(keys) and fitting and fresh


def _has_condition(step: Step, table: Table, _: Model) -> bool:
    has_column = step.condition is not None and step.condition.column in table.names
    return has_column and (step.action != UPDATE or step.column in table.names[1:])


def _has_past(_: Step, table: Table, __: Model) -> bool:
    return table.past is not None


def _has_free_name(step: Step, _: Table, model: Model) -> bool:
    return step.to not in model.tables


_PERMITTED: Mapping[str, Callable[[Step, Table, Model], bool]] = {
    RENAME: _has_free_name,
    ADD_COLUMN: _has_new_column,
    DROP_COLUMN: _has_column_to_drop,
    RENAME_COLUMN: _has_column_to_rename,
    PARTITION: _has_column_for_partitions,
    INSERT: _has_rows,
    MERGE: _has_rows,
    UPDATE: _has_condition,
    DELETE: _has_condition,
    FIND: _has_condition,
    ROLLBACK: _has_past,
}


def _add_column(step: Step, table: Table) -> Table:
    # The columns that are folders of a Hive table stay its last ones.
    place = len(table.columns) - (len(table.partitions) if table.format in HIVE else 0)
    columns = (*table.columns[:place], *step.columns, *table.columns[place:])
    rows = {
        key: replace(row, values=(*row.values[:place], None, *row.values[place:]))
        for key, row in table.rows.items()
    }
    return replace(table, columns=columns, rows=rows)


def _drop_column(step: Step, table: Table) -> Table:
    place = table.names.index(step.column)
    rows = {
        key: replace(row, values=(*row.values[:place], *row.values[place + 1 :]))
        for key, row in table.rows.items()
    }
    columns = (*table.columns[:place], *table.columns[place + 1 :])
    return replace(
        table, columns=columns, rows=rows, former=table.former | {step.column}, mapped=table.format is DELTA
    )


def _rename_column(step: Step, table: Table) -> Table:
    columns = tuple(
        replace(column, name=step.to) if column.name == step.column else column for column in table.columns
    )
    partitions = tuple(step.to if name == step.column else name for name in table.partitions)
    return replace(
        table,
        columns=columns,
        partitions=partitions,
        former=table.former | {step.column},
        mapped=table.format is DELTA,
    )


def _insert(step: Step, table: Table) -> Table:
    return table.with_rows(step.rows, step.engine)


def _update(step: Step, table: Table) -> Table:
    assert step.condition
    place = table.names.index(step.column)
    changed = [table.rows[key].values for key in table.keys(step.condition)]
    return table.with_rows([(*row[:place], step.value, *row[place + 1 :]) for row in changed], step.engine)


def _delete(step: Step, table: Table) -> Table:
    assert step.condition
    deleted = set(table.keys(step.condition))
    return replace(table, rows={key: row for key, row in table.rows.items() if key not in deleted})


def _rewrite(step: Step, table: Table) -> Table:
    return table.with_rows([row.values for row in table.rows.values()], step.engine)


def _rollback(_: Step, table: Table) -> Table:
    assert table.past is not None
    return replace(table, rows=table.past)


def _migrate(step: Step, table: Table) -> Table:
    # Spark knows of one type of moment in Hive's formats, which is that of an instant.
    columns = tuple(
        replace(column, kind=INSTANT) if column.kind is LOCAL else column for column in table.columns
    )
    return replace(
        _rewrite(step, table), format=ICEBERG, maker=step.engine, columns=columns, former=frozenset()
    )


_CHANGES: Mapping[str, Callable[[Step, Table], Table]] = {
    MIGRATE: _migrate,
    COMPACT: _rewrite,
    ADD_COLUMN: _add_column,
    DROP_COLUMN: _drop_column,
    RENAME_COLUMN: _rename_column,
    PARTITION: lambda step, table: replace(table, partitions=(*table.partitions, step.partition)),
    INSERT: _insert,
    MERGE: _insert,
    UPDATE: _update,
    DELETE: _delete,
    ROLLBACK: _rollback,
}
