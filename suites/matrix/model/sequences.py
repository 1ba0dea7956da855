"""What hypothesis draws: sequences of operations that are possible one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from suites.matrix.cross.data_types import DAY, DOUBLE, INSTANT, INT, LOCAL, TEXT, DataType
from suites.matrix.cross.hive_differences import BEFORE_1970, JULIAN, JULIAN_DAY, LAST
from suites.matrix.model import limits
from suites.matrix.model.state import (
    DIFFERENT,
    EQUAL,
    FORMATS,
    HIVE,
    IS_NAN,
    KEY,
    KINDS,
    NAN,
    NOT_NULL,
    NULL,
    Column,
    Condition,
    Model,
    Table,
    Value,
)
from suites.matrix.model.steps import (
    ADD_COLUMN,
    COMPACT,
    CREATE,
    DELETE,
    DROP,
    DROP_COLUMN,
    ENGINES,
    EXPIRE,
    FIND,
    INSERT,
    MERGE,
    MIGRATE,
    PARTITION,
    REMOVE_ORPHANS,
    RENAME,
    RENAME_COLUMN,
    ROLLBACK,
    UPDATE,
    Sequence,
    Step,
    apply,
    engines,
    permitted,
)
from suites.testbed.formats import DELTA, Format

LONGEST = 12
TABLES = ("a", "b")
_MOMENTS = ("2024-05-01 10:00:00.123456", LAST, BEFORE_1970, JULIAN, None)
VALUES: Mapping[DataType, tuple[Value, ...]] = {
    INT: (0, 1, -1, 2**31 - 1, -(2**31), None),
    TEXT: ("a", "b", "", "it's", "a b/c", "%2F:#?=", "%", 'say "x"', "null", "ü𝄞", "a\\b", "a ", None),
    DOUBLE: ("0.5", "-1.5", "1e+300", "5e-324", NAN, None),
    DAY: ("2024-02-29", "1969-12-31", "9999-12-31", JULIAN_DAY, None),
    LOCAL: _MOMENTS,
    INSTANT: _MOMENTS,
}
_PLAIN = ("v", "w", "select", "ü")
# Hive's own formats know neither blanks nor quotes in a name, Delta without column mapping no blanks.
NAMES: Mapping[Format, tuple[str, ...]] = {
    **dict.fromkeys(FORMATS, (*_PLAIN, "it's", "a b")),
    DELTA: (*_PLAIN, "it's"),
    **dict.fromkeys(HIVE, _PLAIN),
}
# Hive has a folder for each value of a column of text.
_FOLDERS = {KINDS["text"], KINDS["int"]}
# What goes together: a sequence is about one or two of these.
_THEMES = (
    frozenset({RENAME, DROP}),
    frozenset({ADD_COLUMN, DROP_COLUMN, RENAME_COLUMN}),
    frozenset({DELETE, FIND}),
    frozenset({ROLLBACK, DELETE, MERGE}),
    frozenset({MIGRATE, FIND}),
    frozenset({MERGE, UPDATE, FIND}),
    frozenset({PARTITION, COMPACT, EXPIRE, REMOVE_ORPHANS}),
)
# How often an action is drawn where it is possible.
_WEIGHTS: Mapping[str, int] = {
    CREATE: 5, RENAME: 5, DROP: 4, MIGRATE: 4, ADD_COLUMN: 2, DROP_COLUMN: 3, RENAME_COLUMN: 2, PARTITION: 2,
    INSERT: 3, MERGE: 3, UPDATE: 2, DELETE: 5, COMPACT: 2, EXPIRE: 1, REMOVE_ORPHANS: 1, FIND: 4, ROLLBACK: 4,
}  # fmt: skip
# How many tables have partitions from the start, of those that can.
_PARTITIONED = 0.5
# Files of one row have statistics that say the most.
_ROWS = (1, 1, 2, 3)


@dataclass(frozen=True)
class Focus:
    """What one sequence is about: everything at once would hardly ever let three rare things follow."""

    formats: tuple[Format, ...]
    actions: frozenset[str]
    kinds: tuple[DataType, ...]
    engines: frozenset[str]


def sequences(longest: int = LONGEST) -> st.SearchStrategy[Sequence]:
    """Return what draws sequences of at most so many steps that no limit forbids.

    Hypothesis gives the seed, and each choice is as likely as its weight says: drawn one by one, choices
    would repeat each other. `shrink` makes a sequence short, in steps instead of choices.
    """
    return st.randoms(use_true_random=True).map(lambda random: sequence(random, longest))


def sequence(random: Random, longest: int = LONGEST) -> Sequence:
    """Return a sequence of steps, each possible after those before it."""
    steps: list[Step] = []
    model = Model()
    known_limits = limits.load()
    focus = _focus(random)
    for _ in range(random.choice((longest, 2 * longest // 3))):
        step = _step(random, random.choice(_actions(model, focus)), model, focus)
        if permitted(step, model) and not known_limits.forbids(step, model):
            steps.append(step)
            model = apply(step, model)
    return tuple(steps)


def _focus(random: Random) -> Focus:
    formats = random.sample(FORMATS, random.randint(1, 2))
    themes = random.sample(_THEMES, random.randint(1, 2))
    kinds = random.sample(tuple(VALUES), random.randint(1, 2))
    working = [engine for engine in ENGINES if any(engine in engines(INSERT, fmt) for fmt in formats)]
    least = min(2, len(working))
    chosen = random.sample(working, random.randint(least, min(3, len(working))))
    return Focus(tuple(formats), frozenset({CREATE, INSERT}.union(*themes)), tuple(kinds), frozenset(chosen))


def _actions(model: Model, focus: Focus) -> list[str]:
    """Return the actions that can be drawn: sequences of empty tables alone would prove nothing."""
    if not model.tables:
        return [CREATE]
    if any(not table.rows and not table.written for table in model.tables.values()):
        return [INSERT]
    possible = {
        action
        for action in focus.actions - {CREATE}
        for table in model.tables.values()
        if _able(action, table, focus)
    }
    # The second table detects effects of renaming or dropping the first.
    if RENAME in focus.actions and len(model.tables) < len(TABLES):
        possible.add(CREATE)
    return [action for action, weight in _WEIGHTS.items() if action in possible for _ in range(weight)]


def _step(random: Random, action: str, model: Model, focus: Focus) -> Step:
    if action == CREATE:
        # The first free name is likely that of an earlier table.
        free = [name for name in TABLES if name not in model.tables]
        return _create(random, free[0], focus)
    choices = {name: able for name, table in model.tables.items() if (able := _able(action, table, focus))}
    if action == INSERT:
        unwritten = {name: able for name, able in choices.items() if not model.tables[name].written}
        choices = unwritten or choices
    name = random.choice(sorted(choices))
    engine = random.choice(choices[name]) if action != FIND else ""
    details = _DETAILS[action](random, model.tables[name]) if action in _DETAILS else {}
    return Step(action, engine, name, **details)


def _cell(action: str) -> str:
    return "read" if action == FIND else action


def _able(action: str, table: Table, focus: Focus) -> tuple[str, ...]:
    """Return who carries out an action: those in focus, or all where none of these does."""
    able = engines(_cell(action), table.format)
    return tuple(engine for engine in able if engine in focus.engines) or able


def _create(random: Random, name: str, focus: Focus) -> Step:
    fmt = random.choice(focus.formats)
    names = random.sample(NAMES[fmt], random.randint(2, 3))
    kinds = [_kind(random.choice(focus.kinds), fmt) for _ in names]
    columns = [Column(KEY, INT), *map(Column, names, kinds)]
    partition = ""
    if kinds[-1] in _FOLDERS and random.random() < _PARTITIONED:
        partition = names[-1]
    makers = engines(CREATE, fmt)
    engine = random.choice([maker for maker in makers if maker in focus.engines] or makers)
    return Step(CREATE, engine, name, format=fmt.name, columns=tuple(columns), partition=partition)


def _kind(kind: DataType, fmt: Format) -> DataType:
    """Return the type that a format has of it: Hive's know of one kind of moment."""
    return LOCAL if kind is INSTANT and fmt in HIVE else kind


def _rows(random: Random, table: Table) -> dict[str, Any]:
    first = max(table.rows, default=0) + 1
    rows = [
        (first + place, *(random.choice(VALUES[column.kind]) for column in table.columns[1:]))
        for place in range(random.choice(_ROWS))
    ]
    return {"rows": tuple(rows)}


def _merged_rows(random: Random, table: Table) -> dict[str, Any]:
    rows = _rows(random, table)["rows"]
    if table.rows:
        key = random.choice(sorted(table.rows))
        rows = ((key, *rows[0][1:]), *rows[1:])
    return {"rows": rows}


def _condition(random: Random, table: Table) -> dict[str, Any]:
    column = random.choice(table.columns[1:])
    operators = [
        EQUAL,
        EQUAL,
        DIFFERENT,
        DIFFERENT,
        NULL,
        NOT_NULL,
        *([IS_NAN] if column.kind is DOUBLE else []),
    ]
    operator = random.choice(operators)
    if operator not in {EQUAL, DIFFERENT}:
        return {"condition": Condition(column.name, operator)}
    present = [value for value in table.values(column.name).values() if value not in {None, NAN}]
    pool = present or [value for value in VALUES[column.kind] if value not in {None, NAN}]
    return {"condition": Condition(column.name, operator, random.choice(pool))}


def _update(random: Random, table: Table) -> dict[str, Any]:
    column = random.choice(table.columns[1:])
    value = random.choice(VALUES[column.kind])
    return {"column": column.name, "value": value, **_condition(random, table)}


def _new_column(random: Random, table: Table) -> dict[str, Any]:
    pool = sorted({*NAMES[table.format], *table.former} - set(table.names)) or ["x"]
    kind = _kind(random.choice(tuple(VALUES)), table.format)
    return {"columns": (Column(random.choice(pool), kind),)}


def _old_column(random: Random, table: Table) -> dict[str, Any]:
    return {"column": random.choice(table.names[1:])}


def _other_name(random: Random, table: Table) -> dict[str, Any]:
    pool = [name for name in NAMES[table.format] if name not in table.names] or ["x"]
    return {**_old_column(random, table), "to": random.choice(pool)}


def _partition(random: Random, table: Table) -> dict[str, Any]:
    names = [column.name for column in table.columns[1:] if column.kind in _FOLDERS]
    return {"partition": random.choice(names) if names else ""}


_DETAILS = {
    RENAME: lambda random, _: {"to": random.choice(TABLES)},
    ADD_COLUMN: _new_column,
    DROP_COLUMN: _old_column,
    RENAME_COLUMN: _other_name,
    PARTITION: _partition,
    INSERT: _rows,
    MERGE: _merged_rows,
    UPDATE: _update,
    DELETE: _condition,
    FIND: _condition,
}
