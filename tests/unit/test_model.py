"""The model of tables tells what engines must return: a faulty one is found, and its sequence made short."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import Phase, find, given, settings

from lakehouse.errors import LakehouseError
from suites.matrix.cross.data_types import DAY, DOUBLE, INT, LOCAL, TEXT
from suites.matrix.cross.engines import FLINK, PYICEBERG, SPARK, TRINO
from suites.matrix.model import limits, recorded, statements
from suites.matrix.model.exploring import explore
from suites.matrix.model.fixes import FIXES
from suites.matrix.model.replay import FOUND, REFUSED, ROWS, RefusalError, World, differences, replay
from suites.matrix.model.sequences import sequences
from suites.matrix.model.shrinking import shrink
from suites.matrix.model.state import (
    DIFFERENT,
    HIVE,
    NAN,
    Column,
    Condition,
    Model,
    Row,
    Table,
    Values,
    python,
    spell,
)
from suites.matrix.model.steps import (
    ADD_COLUMN,
    CREATE,
    DELETE,
    DROP,
    DROP_COLUMN,
    FIND,
    INSERT,
    MIGRATE,
    RENAME,
    RENAME_COLUMN,
    ROLLBACK,
    Sequence,
    Step,
    apply,
    engines,
    is_possible,
    permitted,
    states,
)
from suites.testbed.formats import HIVE_ORC, ICEBERG

LIMITS = limits.load()
ID = Column("id", INT)
MOMENT = "2024-05-01 10:00:00.123456"


class Lake(World):
    """Engines that are right in everything."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}

    def execute(self, step: Step, model: Model) -> None:
        assert permitted(step, model)
        self.tables = dict(apply(step, Model(self.tables)).tables)

    def rows(self, reader: str, name: str, _: Table) -> list[Values]:
        return [row.values for row in self.seen(reader, name).rows.values()]

    def columns(self, reader: str, name: str, _: Table) -> list[str]:
        return self.seen(reader, name).names

    def found(self, reader: str, name: str, _: Table, condition: Condition) -> list[int]:
        return self.seen(reader, name).keys(condition)

    def predicts(self, _: str, __: str, ___: Table) -> bool:
        return False

    def close(self) -> None:
        """Forget everything."""

    def seen(self, _: str, name: str) -> Table:
        """Return a table as a reader sees it."""
        return self.tables[name]


class OneFolder(Lake):
    """A table that is renamed keeps its folder, and the next one of its old name gets the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folders: dict[str, str] = {}
        self.removed: set[str] = set()

    def execute(self, step: Step, model: Model) -> None:
        super().execute(step, model)
        if step.action == CREATE:
            self.folders[step.table] = step.table
            self.removed.discard(step.table)
        elif step.action == RENAME:
            self.folders[step.to] = self.folders.pop(step.table)
        elif step.action == DROP:
            self.removed.add(self.folders.pop(step.table))

    def seen(self, reader: str, name: str) -> Table:
        if self.folders[name] in self.removed:
            raise RefusalError("no such file")
        return super().seen(reader, name)


class Milliseconds(Lake):
    """Trino cuts moments of Hive tables."""

    def seen(self, reader: str, name: str) -> Table:
        table = super().seen(reader, name)
        if reader != TRINO or table.format not in HIVE:
            return table
        kinds = [column.kind for column in table.columns]
        rows = {
            key: Row(
                tuple(
                    f"{str(value)[:-3]}000" if kind is LOCAL and value else value
                    for value, kind in zip(row.values, kinds, strict=True)
                ),
                row.writer,
            )
            for key, row in table.rows.items()
        }
        return replace(table, rows=rows)


class HiddenMoments(Lake):
    """Spark skips what lies between two milliseconds, in ORC, where a filter asks for it."""

    def found(self, reader: str, name: str, _: Table, condition: Condition) -> list[int]:
        keys = super().found(reader, name, _, condition)
        hidden = self.tables[name].format is HIVE_ORC and str(condition.value).endswith("456")
        return [] if hidden and condition.operator == "=" and reader == SPARK else keys


class ByPosition(Lake):
    """Trino reads ORC by the place of a column: of one that was dropped it shows the values."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped: dict[str, tuple[int, Table]] = {}

    def execute(self, step: Step, model: Model) -> None:
        if step.action == DROP_COLUMN and model.tables[step.table].format is HIVE_ORC:
            table = model.tables[step.table]
            self.dropped[step.table] = table.names.index(step.column), table
        super().execute(step, model)

    def seen(self, reader: str, name: str) -> Table:
        table = super().seen(reader, name)
        if reader != TRINO or name not in self.dropped:
            return table
        place, before = self.dropped[name]
        rows = {
            key: replace(row, values=before.rows[key].values[: len(row.values)])
            if key in before.rows
            else row
            for key, row in table.rows.items()
        }
        return replace(table, rows=rows) if place < len(table.columns) else table


class OldRows(Lake):
    """Spark shows what it once read of a Hive table."""

    def __init__(self) -> None:
        super().__init__()
        self.cached: dict[str, Table] = {}

    def execute(self, step: Step, model: Model) -> None:
        super().execute(step, model)
        if step.engine == SPARK or step.action in {CREATE, DROP, RENAME, ADD_COLUMN, DROP_COLUMN}:
            self.cached.pop(step.table, None)

    def seen(self, reader: str, name: str) -> Table:
        table = super().seen(reader, name)
        if reader != SPARK or table.format not in HIVE:
            return table
        return self.cached.setdefault(name, table)


class NullDeleted(Lake):
    """PyIceberg deletes rows of NULL where a value is to differ."""

    def execute(self, step: Step, model: Model) -> None:
        super().execute(step, model)
        condition = step.condition
        if (
            step.action == DELETE
            and step.engine == PYICEBERG
            and condition
            and condition.operator == DIFFERENT
        ):
            values = self.tables[step.table].values(condition.column)
            kept = {key: row for key, row in self.tables[step.table].rows.items() if values[key] is not None}
            self.tables[step.table] = replace(self.tables[step.table], rows=kept)


class FoldersAsTheyAre(Lake):
    """A Hive table becomes one of Iceberg with the names of its folders as values."""

    def execute(self, step: Step, model: Model) -> None:
        super().execute(step, model)
        table = self.tables.get(step.table)
        if step.action == MIGRATE and table and table.partitions:
            place = table.names.index(table.partitions[0])
            rows = {
                key: replace(
                    row,
                    values=tuple(
                        str(value).replace("/", "%2F") if here == place and value else value
                        for here, value in enumerate(row.values)
                    ),
                )
                for key, row in table.rows.items()
            }
            self.tables[step.table] = replace(table, rows=rows)


FAULTS: tuple[type[Lake], ...] = (
    OneFolder,
    Milliseconds,
    HiddenMoments,
    ByPosition,
    OldRows,
    NullDeleted,
    FoldersAsTheyAre,
)


def diverges(lake: Callable[[], Lake]) -> Callable[[Sequence], bool]:
    return lambda sequence: replay(sequence, lake(), LIMITS) is not None


@settings(max_examples=100)
@given(sequences())
def test_engines_that_are_right_never_diverge_and_a_sequence_survives_its_file(sequence: Sequence) -> None:
    assert replay(sequence, Lake(), LIMITS) is None
    example = recorded.Example("odd", sequence, 7, ("x",))
    [data] = yaml.safe_load(recorded.dump([example]))
    assert recorded.steps(data["steps"]) == sequence
    assert (data["seed"], data["without"]) == (7, ["x"])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_each_fault_is_found_from_nothing_and_its_sequence_is_short(fault: type[Lake]) -> None:
    drawn = settings(max_examples=5000, phases=[Phase.generate])
    found = find(sequences(), diverges(fault), settings=drawn)
    short = shrink(found, diverges(fault), 300)
    assert diverges(fault)(short)
    assert len(short) <= 6


def test_a_seed_draws_the_same_sequences_and_the_first_that_diverge_are_kept() -> None:
    runs = [explore(lambda: closing(ByPosition()), LIMITS, seed=1, seconds=3600, enough=1) for _ in range(2)]
    [(divergence, sequence)], [again] = (run.found for run in runs)
    assert (divergence, sequence) == again
    assert DROP_COLUMN in {step.action for step in sequence}
    assert (divergence.engine, divergence.place) == (TRINO, len(sequence))
    assert explore(lambda: closing(Lake()), LIMITS, seed=1, seconds=0).carried_out == 0


TABLE = (
    Step(
        CREATE,
        SPARK,
        "a",
        format="hive-orc",
        columns=(ID, Column("v", LOCAL), Column("w", TEXT)),
        partition="w",
    ),
    Step(INSERT, FLINK, "a", rows=((1, MOMENT, "it's"), (2, None, None))),
)


def test_each_kind_of_divergence_says_where_it_is() -> None:
    told = {}
    for fault, more in (
        (Milliseconds, ()),
        (HiddenMoments, (Step(FIND, "", "a", condition=Condition("v", "=", MOMENT)),)),
        (
            OneFolder,
            (
                Step(RENAME, TRINO, "a", to="b"),
                TABLE[0],
                TABLE[1],
                Step(DROP, SPARK, "b"),
            ),
        ),
    ):
        divergence = replay((*TABLE, *more), fault(), LIMITS)
        assert divergence
        told[fault.__name__] = (divergence.place, divergence.engine, divergence.kind)
    assert told == {
        "Milliseconds": (2, TRINO, ROWS),
        "HiddenMoments": (3, SPARK, FOUND),
        "OneFolder": (6, FLINK, REFUSED),
    }  # fmt: skip


def test_what_an_engine_is_known_to_read_otherwise_is_no_divergence() -> None:
    table = states(TABLE)[-1].tables["a"]
    folder = (2, None, "__HIVE_DEFAULT_PARTITION__")
    rows = [table.rows[1].values, folder]
    assert differences(FLINK, table, rows) == []
    assert differences(SPARK, table, rows) == [f"lacks {(2, None, None)}", f"has {folder}"]
    # Another value of the same row, or the row once more, is one.
    assert differences(FLINK, table, [(1, None, "it's"), folder])
    assert differences(FLINK, table, [*rows, folder]) == [f"has {folder}"]


class TestSteps:
    """What is possible, and what the model has afterwards."""

    def test_what_the_cells_declare_is_who_carries_it_out(self) -> None:
        assert engines(DELETE, ICEBERG) == (SPARK, TRINO, PYICEBERG)
        assert engines(DELETE, HIVE_ORC) == ()
        assert engines(RENAME_COLUMN, HIVE_ORC) == ()

    @pytest.mark.parametrize(
        "step",
        [
            Step(INSERT, SPARK, "b", rows=((1, None, None),)),
            Step(INSERT, SPARK, "a", rows=((1, None, None),)),
            Step(INSERT, SPARK, "a", rows=((3, None),)),
            Step(INSERT, PYICEBERG, "a", rows=((3, None, None),)),
            Step(DROP_COLUMN, TRINO, "a", column="v"),
            Step(DROP_COLUMN, TRINO, "a", column="id"),
            Step(RENAME, SPARK, "a", to="a"),
            Step(ADD_COLUMN, SPARK, "a", columns=(Column("V", TEXT),)),
            Step(FIND, "", "a", condition=Condition("x", "is null")),
            Step(DELETE, SPARK, "a", condition=Condition("v", "is null")),
        ],
    )
    def test_what_makes_no_sense_is_not_possible(self, step: Step) -> None:
        assert not is_possible((*TABLE, step))

    def test_a_column_comes_before_the_folders_and_a_copy_has_no_past(self) -> None:
        more = (
            Step(ADD_COLUMN, TRINO, "a", columns=(Column("x", DOUBLE),)),
            Step(DROP_COLUMN, TRINO, "a", column="v"),
            Step(MIGRATE, SPARK, "a"),
        )
        added, dropped, migrated = (model.tables["a"] for model in states((*TABLE, *more))[-3:])
        assert (added.names, added.rows[1].values) == (["id", "v", "x", "w"], (1, MOMENT, None, "it's"))
        assert (dropped.names, dropped.former) == (["id", "x", "w"], frozenset({"v"}))
        assert (migrated.format, migrated.home, migrated.former) == (ICEBERG, HIVE_ORC, frozenset())
        assert {row.writer for row in migrated.rows.values()} == {SPARK}

    def test_a_rollback_brings_back_what_the_last_change_of_rows_found(self) -> None:
        begin = (
            Step(CREATE, SPARK, "a", format="iceberg", columns=(ID, Column("v", TEXT))),
            Step(INSERT, SPARK, "a", rows=((1, "a"),)),
        )
        delete = Step(DELETE, TRINO, "a", condition=Condition("v", "=", "a"))
        back = Step(ROLLBACK, TRINO, "a")
        assert not is_possible((*begin, back))
        states_of_table = [model.tables["a"] for model in states((*begin, delete, back))[1:]]
        assert [list(table.rows) for table in states_of_table] == [[], [1], [], [1]]
        assert not is_possible((*begin, delete, back, back))
        # Versions know the columns of their time: whether these come back differs from format to format.
        assert not is_possible(
            (*begin, delete, Step(ADD_COLUMN, SPARK, "a", columns=(Column("x", INT),)), back)
        )

    def test_what_a_limit_names_is_not_drawn(self) -> None:
        model = states((*TABLE, Step(ADD_COLUMN, TRINO, "a", columns=(Column("x", DOUBLE),))))[-1]
        model = apply(Step(DROP_COLUMN, TRINO, "a", column="v"), model)
        back = Step(ADD_COLUMN, TRINO, "a", columns=(Column("v", TEXT),))
        assert permitted(back, model)
        assert LIMITS.forbids(back, model)
        assert not LIMITS.forbids(replace(back, columns=(Column("y", TEXT),)), model)

    @pytest.mark.parametrize(
        ("operator", "true"),
        [("=", "a"), ("!=", "b"), ("is null", None), ("is not null", "a"), ("is nan", NAN)],
    )
    def test_a_condition_is_true_as_in_sql(self, operator: str, true: str | None) -> None:
        condition = Condition("v", operator, "a")
        assert condition.holds(true)
        assert condition.holds(None) is (operator == "is null")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"wrong": "x"}, "lacks a limit, or one of refused and wrong"),
        ({"wrong": "x", "refused": "y", "limit": "z"}, "lacks a limit, or one of refused and wrong"),
        ({"wrong": "x", "limit": "z", "when": "ever"}, "when is none of .*name of a former column"),
        ({"wrong": "x", "limit": "z", "engines": ["hive"]}, "has unknown engines hive"),
        ({"wrong": "x", "limit": "z", "since": 1}, "has since"),
    ],
)
def test_an_entry_that_is_no_limit_is_named(entry: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "limits.yml"
    path.write_text(yaml.safe_dump({"steps": [entry], "reads": []}), encoding="utf-8")
    with pytest.raises(LakehouseError, match=said):
        limits.load(path)


def test_the_recorded_sequences_are_possible_and_each_fix_has_one() -> None:
    examples = recorded.load()
    assert {name for example in examples for name in example.without} == set(FIXES)
    for example in examples:
        models = states(example.sequence)
        allowed = [
            not LIMITS.forbids(step, model) for step, model in zip(example.sequence, models, strict=False)
        ]
        assert all(allowed), example
        # Engines that are right pass it: what it shows is theirs.
        assert replay(example.sequence, Lake(), LIMITS) is None


@pytest.mark.parametrize(
    ("engine", "value", "forbidden"), [(TRINO, "ü", True), (TRINO, "u", False), (SPARK, "ü", False)]
)
def test_trino_writes_no_partition_of_a_hive_table_beyond_ascii(
    engine: str, value: str, forbidden: bool
) -> None:
    step = Step(INSERT, engine, "a", rows=((3, None, value),))
    assert LIMITS.forbids(step, states(TABLE)[-1]) is forbidden


@pytest.mark.parametrize(("value", "explained"), [("", True), (None, False)])
def test_an_empty_text_as_partition_of_a_delta_table_may_be_null(value: str | None, explained: bool) -> None:
    create = Step(
        CREATE, SPARK, "a", format="delta", columns=(ID, Column("v", INT), Column("w", TEXT)), partition="w"
    )
    table = states((create, Step(INSERT, SPARK, "a", rows=((1, 2, value),))))[-1].tables["a"]
    assert LIMITS.explains(TRINO, table, "") is explained


def test_a_limit_of_readers_is_one_of_its_tables_and_words() -> None:
    refused = limits.Limit((), ("hive-orc",), (FLINK,), "", "no such", "", "docs")
    known = limits.Limits((), (refused,))
    table = states(TABLE)[-1].tables["a"]
    assert known.explains(FLINK, table, "there is no such column")
    assert not known.explains(FLINK, table, "out of memory")
    assert not known.explains(FLINK, table, "")
    assert not known.explains(SPARK, table, "there is no such column")


class TestStatements:
    """What the engines are sent."""

    def test_a_hive_table_is_made_as_each_engine_spells_it(self) -> None:
        table = states(TABLE)[-1].tables["a"]
        assert statements.sql(TABLE[0], table, "t", "") == [
            "CREATE TABLE t (`id` INT, `v` TIMESTAMP) PARTITIONED BY (`w` STRING) STORED AS ORC"
        ]
        assert statements.sql(replace(TABLE[0], engine=TRINO), table, "t", "") == [
            'CREATE TABLE t ("id" INT, "v" TIMESTAMP(6), "w" VARCHAR)'
            " WITH (format = 'ORC', partitioned_by = ARRAY['w'])"
        ]
        assert statements.sql(replace(TABLE[0], engine=FLINK), table, "t", "") == [
            "CREATE TABLE t (`id` INT, `v` TIMESTAMP(9), `w` STRING) PARTITIONED BY (`w`)"
            " WITH ('connector' = 'hive', 'hive.storage.file-format' = 'orc')"
        ]

    def test_quotes_and_odd_names_stay_what_they_are(self) -> None:
        table = Table(ICEBERG, ICEBERG, SPARK, (ID, Column('it"s', TEXT)))
        where = Condition('it"s', "!=", "it's")
        assert statements.query(SPARK, table, "t", where) == (
            "SELECT id FROM t WHERE `it\"s` <> CAST('it\\'s' AS STRING)"
        )
        assert statements.query(TRINO, table, "t", where) == (
            "SELECT id FROM t WHERE \"it\"\"s\" <> CAST('it''s' AS VARCHAR)"
        )
        assert statements.delta_rs_condition(table, where) == "\"it\"\"s\" != 'it''s'"

    @pytest.mark.parametrize("value", [None, "2024-02-29", "9999-12-31"])
    def test_a_value_survives_python(self, value: str | None) -> None:
        for kind, text in ((DAY, value), (LOCAL, f"{value} 10:00:00.000001" if value else None)):
            assert spell(python(text, kind), kind) == text
        assert spell(float("nan"), DOUBLE) == NAN
        with pytest.raises(AssertionError, match="is no int"):
            spell("1", INT)
