"""Tables that some engine reads wrongly or not at all: how they come about, and what each makes of them.

Those by hand are the kinds that are known; `tables` draws others, of the same parts in any combination.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from lakehouse.tables import features
from lakehouse.tables.features import CUT, FLINK, OF_ICEBERG, PYICEBERG, REFUSED, SPARK, SPREADS, TRINO, WRONG
from suites.matrix.cross.data_types import INSTANT, INT, TEXT, DataType, listing, record
from suites.testbed.engines.facade import Row

# DuckDB and Polars read Iceberg through PyIceberg: once is enough.
READERS = {features.OF_ICEBERG: (SPARK, TRINO, FLINK, PYICEBERG), features.OF_HIVE: features.OF_HIVE}
CATALOGS = {
    features.OF_ICEBERG: dict.fromkeys((SPARK, TRINO, FLINK), "iceberg"),
    features.OF_HIVE: {SPARK: "spark_catalog", TRINO: "hive", FLINK: "hive"},
}
TIME = DataType("time")
_MIGRATE = (TRINO, "CALL iceberg.system.migrate('{database}', '{name}')")


@dataclass(frozen=True)
class OddTable:
    """A table by the statements that make it: engine and SQL, with `{short}`, `{database}` and `{name}`.

    `of` are the engines that have its format. `rows` are those that each of them must read in `columns`;
    `effects` are those that do not, with what becomes of it.
    """

    title: str
    of: tuple[str, ...]
    columns: Mapping[str, DataType]
    steps: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    effects: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.title

    @property
    def readers(self) -> tuple[str, ...]:
        """The engines that are compared."""
        return READERS[self.of]


def _every(effect: str) -> dict[str, str]:
    return dict.fromkeys(READERS[OF_ICEBERG], effect)


def _iceberg(
    title: str, columns: Mapping[str, DataType], steps: list[str], rows: list[Row], **effects: str
) -> OddTable:
    """Return a table that Spark makes."""
    return OddTable(title, OF_ICEBERG, columns, tuple((SPARK, step) for step in steps), tuple(rows), effects)


_DROPPED = [
    "CREATE TABLE iceberg.{short} (id INT, p STRING) USING iceberg PARTITIONED BY (p)",
    "INSERT INTO iceberg.{short} VALUES (1, 'a'), (2, 'b')",
    "ALTER TABLE iceberg.{short} DROP PARTITION FIELD p",
    "ALTER TABLE iceberg.{short} DROP COLUMN p",
]
_REWRITE = "CALL iceberg.system.rewrite_data_files(table => '{short}', options => map('rewrite-all', 'true'))"
_COMMIT = "INSERT INTO iceberg.{short} (id) VALUES (3)"
_PLAIN_PARQUET = (
    (SPARK, "CREATE TABLE spark_catalog.{short} (id INT, secret STRING) STORED AS PARQUET"),
    (SPARK, "INSERT INTO spark_catalog.{short} VALUES (1, 'old')"),
    _MIGRATE,
)
_BUCKETS = "CLUSTERED BY (id) INTO 4 BUCKETS STORED AS ORC"
_UNIX = dt.datetime(2024, 5, 1, 10, 0, 0, 123456, dt.UTC)

TABLES = (
    _iceberg("partitions of a dropped column", {"id": INT}, _DROPPED, [(1,), (2,)],
             trino=REFUSED, flink=REFUSED),
    _iceberg("partitions of a dropped column, rewritten", {"id": INT}, [*_DROPPED, _REWRITE], [(1,), (2,)],
             trino=REFUSED),
    _iceberg("partitions of a dropped column, mended", {"id": INT}, [*_DROPPED, _REWRITE, _COMMIT],
             [(1,), (2,), (3,)]),
    *(
        _iceberg(
            f"a field called {name}", {"s": record(**{name: TEXT})},
            [f"CREATE TABLE iceberg.{{short}} (s STRUCT<`{name}`: STRING>) USING iceberg",
             "INSERT INTO iceberg.{short} SELECT named_struct('" + name + "', 'x')"],
            [({name: "x"},)], trino=SPREADS,
        )
        for name in ("content-type", "a:b")
    ),
    _iceberg(
        "a field that was called content-type", {"s": record(content_type=TEXT)},
        ["CREATE TABLE iceberg.{short} (s STRUCT<`content-type`: STRING>) USING iceberg",
         "INSERT INTO iceberg.{short} SELECT named_struct('content-type', 'x')",
         "ALTER TABLE iceberg.{short} RENAME COLUMN s.`content-type` TO content_type"],
        [({"content_type": "x"},)],
    ),
    OddTable(
        "a time", OF_ICEBERG, {"id": INT, "t": TIME},
        ((TRINO, "CREATE TABLE iceberg.{short} (id INT, t TIME(6))"),
         (TRINO, "INSERT INTO iceberg.{short} VALUES (1, TIME '10:00:00.123456')")),
        ((1, dt.time(10, 0, 0, 123456)),), {SPARK: REFUSED, FLINK: CUT},
    ),
    OddTable("an imported table", OF_ICEBERG, {"id": INT, "secret": TEXT}, _PLAIN_PARQUET, ((1, "old"),)),
    OddTable(
        "an imported table with a column made again", OF_ICEBERG, {"id": INT, "secret": TEXT},
        (*_PLAIN_PARQUET, (SPARK, "ALTER TABLE iceberg.{short} DROP COLUMN secret"),
         (SPARK, "ALTER TABLE iceberg.{short} ADD COLUMN secret STRING")),
        ((1, None),), _every(WRONG),
    ),
    OddTable(
        "an imported table with a capital in a struct", OF_ICEBERG, {"id": INT, "st": record(a=INT)},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT, st STRUCT<A: INT>) STORED AS PARQUET"),
         (SPARK, "INSERT INTO spark_catalog.{short} SELECT 1, named_struct('A', 7)"), _MIGRATE),
        ((1, {"a": 7}),), {SPARK: WRONG, FLINK: WRONG, PYICEBERG: REFUSED},
    ),
    OddTable(
        "an imported table with times of 96 bits", OF_ICEBERG, {"id": INT, "ts": INSTANT},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT, ts TIMESTAMP) STORED AS PARQUET"),
         (SPARK, "INSERT INTO spark_catalog.{short} VALUES (1, TIMESTAMP '2024-05-01 10:00:00.123456')"),
         _MIGRATE),
        ((1, _UNIX),), {FLINK: REFUSED},
    ),
    OddTable(
        "an imported table with a folder whose name is escaped", OF_ICEBERG, {"id": INT, "p": TEXT},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT) PARTITIONED BY (p STRING) STORED AS PARQUET"),
         (SPARK, "INSERT INTO spark_catalog.{short} VALUES (1, 'a b/c')"), _MIGRATE),
        ((1, "a b/c"),), _every(WRONG),
    ),
    OddTable(
        "an imported table without name mapping", OF_ICEBERG, {"id": INT, "secret": TEXT},
        (*_PLAIN_PARQUET,
         (SPARK, "ALTER TABLE iceberg.{short} UNSET TBLPROPERTIES ('schema.name-mapping.default')")),
        ((1, "old"),), {TRINO: WRONG, PYICEBERG: REFUSED},
    ),
    OddTable(
        "a header line", features.OF_HIVE, {"id": TEXT},
        ((TRINO, "CREATE TABLE hive.{short} (id VARCHAR) WITH (format = 'CSV', skip_header_line_count = 1)"),
         (TRINO, "INSERT INTO hive.{short} VALUES 'a', 'b'")),
        (("a",), ("b",)), {SPARK: WRONG, FLINK: WRONG},
    ),
    OddTable(
        "a partition that is null", features.OF_HIVE, {"id": INT, "p": TEXT},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT) PARTITIONED BY (p STRING) STORED AS PARQUET"),
         (SPARK, "INSERT INTO spark_catalog.{short} VALUES (1, 'a'), (2, NULL)")),
        ((1, "a"), (2, None)), {FLINK: WRONG},
    ),
    OddTable(
        "a table of Spark that Trino altered", features.OF_HIVE, {"id": INT, "note": TEXT},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT) USING parquet"),
         (SPARK, "INSERT INTO spark_catalog.{short} VALUES (1)"),
         (TRINO, "ALTER TABLE hive.{short} ADD COLUMN note VARCHAR"),
         (TRINO, "INSERT INTO hive.{short} VALUES (2, 'x')")),
        ((1, None), (2, "x")), {SPARK: WRONG},
    ),
    OddTable(
        "a table whose columns Spark alone knows", features.OF_HIVE, {"id": INT},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT) USING json"),
         (SPARK, "INSERT INTO spark_catalog.{short} VALUES (1)")),
        ((1,),), {TRINO: REFUSED, FLINK: REFUSED},
    ),
    OddTable(
        "nested types in a list of Parquet", features.OF_HIVE, {"id": INT, "s": listing(record(a=INT))},
        ((SPARK, "CREATE TABLE spark_catalog.{short} (id INT, s ARRAY<STRUCT<a: INT>>) STORED AS PARQUET"),
         (SPARK, "INSERT INTO spark_catalog.{short} SELECT 1, array(named_struct('a', 2))")),
        ((1, [{"a": 2}]),), {FLINK: REFUSED},
    ),
    *(
        OddTable(
            f"buckets that {writer} filled", features.OF_HIVE, {"id": INT},
            ((SPARK, f"CREATE TABLE spark_catalog.{{short}} (id INT) {_BUCKETS}"),
             (writer, f"INSERT INTO {CATALOGS[features.OF_HIVE][writer]}.{{short}} VALUES (1)")),
            ((1,),), {TRINO: REFUSED} if writer == FLINK else {},
        )
        for writer in features.OF_HIVE
    ),
)  # fmt: skip


# Of a struct, in Iceberg by Spark: Trino's parser of types takes some of them.
FIELDS = ("a", "a b", "é", "x.y", "1st", "Upper", "content-type", "a:b", "a/b", "#")
_KEPT, _DROPPED_COLUMN, _REWRITTEN = "kept", "dropped", "rewritten"


def tables() -> st.SearchStrategy[OddTable]:
    """Draw a table of Iceberg by Spark or Trino, of Iceberg by an import, or of Hive."""
    return st.one_of(_by_spark(), _by_trino(), _imported(), _of_hive())


@st.composite
def _by_spark(draw: st.DrawFn) -> OddTable:
    name = draw(st.sampled_from([None, *FIELDS]))
    partition = draw(st.sampled_from([None, _KEPT, _DROPPED_COLUMN, _REWRITTEN]))
    value = draw(st.sampled_from(["a", "a b/c", "it's", "%2F"]))
    columns: dict[str, DataType] = {"id": INT}
    kinds, values = ["id INT"], ["1 AS id"]
    row: list[object] = [1]
    if name:
        columns["s"] = record(**{name: INT})
        kinds.append(f"s STRUCT<`{name}`: INT>")
        values.append(f"named_struct('{name}', 2) AS s")
        row.append({name: 2})
    if partition:
        kinds.append("p STRING")
        values.append(f'"{value}" AS p')
    clause = " PARTITIONED BY (p)" if partition else ""
    steps = [
        f"CREATE TABLE iceberg.{{short}} ({', '.join(kinds)}) USING iceberg{clause}",
        f"INSERT INTO iceberg.{{short}} SELECT {', '.join(values)}",
    ]
    if partition == _KEPT:
        columns["p"] = TEXT
        row.append(value)
    elif partition:
        steps += _DROPPED[2:]
    if partition == _REWRITTEN:
        steps.append(_REWRITE)
    return _iceberg(f"by spark: field {name}, partition {partition}", columns, steps, [tuple(row)])


@st.composite
def _by_trino(draw: st.DrawFn) -> OddTable:
    micros, nested = draw(st.booleans()), draw(st.booleans())
    second = "10:00:00.123456" if micros else "10:00:00.123000"
    kind, value = ("ROW(at TIME(6))", f"CAST(ROW(TIME '{second}') AS ROW(at TIME(6)))") if nested else (
        "TIME(6)", f"TIME '{second}'")  # fmt: skip
    moment = dt.time.fromisoformat(second)
    return OddTable(
        f"by trino: a time, micros {micros}, nested {nested}", OF_ICEBERG,
        {"id": INT, "t": record(at=TIME) if nested else TIME},
        ((TRINO, f"CREATE TABLE iceberg.{{short}} (id INT, t {kind})"),
         (TRINO, f"INSERT INTO iceberg.{{short}} VALUES (1, {value})")),
        ((1, {"at": moment} if nested else moment),),
    )  # fmt: skip


@st.composite
def _imported(draw: st.DrawFn) -> OddTable:
    form, remade = draw(st.sampled_from(["PARQUET", "ORC"])), draw(st.booleans())
    # Trino does not migrate ORC with capitals.
    field_name = draw(st.sampled_from([None, "a", *(["A"] if form == "PARQUET" else [])]))
    value = draw(st.sampled_from([None, "a", "a b/c"]))
    columns: dict[str, DataType] = {"id": INT, "secret": TEXT}
    kinds, values = ["id INT", "secret STRING"], ["1 AS id", "'old' AS secret"]
    row: list[object] = [1, None if remade else "old"]
    if field_name:
        columns["st"] = record(a=INT)
        kinds.append(f"st STRUCT<{field_name}: INT>")
        values.append(f"named_struct('{field_name}', 2) AS st")
        row.append({"a": 2})
    if value:
        columns["p"] = TEXT
        values.append(f"'{value}' AS p")
        row.append(value)
    clause = " PARTITIONED BY (p STRING)" if value else ""
    steps = [
        (SPARK, f"CREATE TABLE spark_catalog.{{short}} ({', '.join(kinds)}){clause} STORED AS {form}"),
        (SPARK, f"INSERT INTO spark_catalog.{{short}} SELECT {', '.join(values)}"),
        _MIGRATE,
    ]
    if remade:
        steps += [
            (SPARK, "ALTER TABLE iceberg.{short} DROP COLUMN secret"),
            (SPARK, "ALTER TABLE iceberg.{short} ADD COLUMN secret STRING"),
        ]
    title = f"imported: {form}, field {field_name}, partition {value}, made again {remade}"
    return OddTable(title, OF_ICEBERG, columns, tuple(steps), (tuple(row),))


@st.composite
def _of_hive(draw: st.DrawFn) -> OddTable:
    form = draw(st.sampled_from(["STORED AS PARQUET", "STORED AS ORC", "USING parquet", "USING orc"]))
    partition = draw(st.sampled_from([None, "'a'", "NULL"]))
    altered, nested = draw(st.booleans()), draw(st.booleans())
    columns: dict[str, DataType] = {"id": INT}
    kinds, values = ["id INT"], ["1 AS id"]
    row: list[object] = [1]
    if nested:
        columns["s"] = record(a=INT)
        kinds.append("s STRUCT<a: INT>")
        values.append("named_struct('a', 2) AS s")
        row.append({"a": 2})
    using = form.startswith("USING")
    if partition:
        values.append(f"CAST({partition} AS STRING) AS p")
        kinds += ["p STRING"] if using else []
    clause = {True: " PARTITIONED BY (p)", False: " PARTITIONED BY (p STRING)"}[using] if partition else ""
    body = f"{form}{clause}" if using else f"{clause.strip()} {form}"
    steps = [
        (SPARK, f"CREATE TABLE spark_catalog.{{short}} ({', '.join(kinds)}) {body}"),
        (SPARK, f"INSERT INTO spark_catalog.{{short}} SELECT {', '.join(values)}"),
    ]
    if altered:
        columns["note"] = TEXT
        row.append(None)
        steps.append((TRINO, "ALTER TABLE hive.{short} ADD COLUMN note VARCHAR"))
    if partition:
        columns["p"] = TEXT
        row.append(None if partition == "NULL" else "a")
    title = f"hive: {form}, partition {partition}, altered {altered}, nested {nested}"
    return OddTable(title, features.OF_HIVE, columns, tuple(steps), (tuple(row),))
