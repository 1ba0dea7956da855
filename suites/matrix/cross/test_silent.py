"""What returns wrong rows without a word: the defaults keep it out, a table that asks for it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache

import pyarrow as pa
import pytest
import requests
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaProtocolError
from lakehouse_clients import ClientError
from lakehouse_clients.delta import writer_properties

from lakehouse.tables import risky
from suites.matrix.cross.dangers import (
    CLIENTS,
    DANGERS,
    MAPPING,
    UNREAD,
    UNSCANNED,
    VECTORS,
    WIDENING,
    Danger,
)
from suites.matrix.cross.engines import DELTA_RS, FLINK, READERS, SPARK, TRINO, Engines
from suites.matrix.cross.limits import Limit, marks, wrong
from suites.testbed import sessions
from suites.testbed.databases import Table
from suites.testbed.endpoints import Endpoints
from suites.testbed.engines.flink import Flink
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.tables import Tables

CUT = wrong("cut to milliseconds", "https://github.com/trinodb/trino/issues/20359")
MODE = "execution.runtime-mode"
NUMBERS, RUNS = 10_000, 3
_WHOLE = "count(*), count(DISTINCT id), bit_xor(xxhash64(id))"
_KIND = "DECIMAL(38, 18)"
_LONG = "123456789.123456789123456789"
DECIMALS = pa.table({"x": pa.array([Decimal(_LONG)], pa.decimal128(38, 18))})
ROUNDED = wrong("rows that statistics hide", "https://github.com/delta-io/delta-rs/pull/4757")
_ROWS = "SELECT CAST(id AS INT) AS id, CAST(id AS INT) AS amount FROM range(1, 3, 1, 1)"


@pytest.fixture(scope="module")
def carrying(_engines: Engines, delta: Tables) -> Callable[[Danger], Table]:
    """Give a Delta table that carries a danger because it asked for it."""

    @cache
    def make(danger: Danger) -> Table:
        table = delta.new(f"TBLPROPERTIES ({danger.properties})", _ROWS)
        for statement in danger.statements:
            _engines.spark.sql(statement.format(table=table))
        return table

    return make


@pytest.fixture(scope="module")
def decimals(_engines: Engines, delta: Tables) -> Callable[[bool], Table]:
    """Give a Delta table with one long decimal, written by delta-rs alone or as the kit does."""

    @cache
    def write(by_kit: bool) -> Table:
        properties = writer_properties(DECIMALS.schema) if by_kit else WriterProperties()
        table = delta.new("", f"SELECT CAST(0 AS {_KIND}) AS x LIMIT 0")
        write_deltalake(
            _engines.clients.delta(table.short), DECIMALS, mode="append", writer_properties=properties
        )
        return table

    return write


@pytest.fixture(scope="module")
def checkpointed(_engines: Engines, delta: Tables) -> Table:
    """A Delta table with a checkpoint of the second kind."""
    properties = "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '1'"
    table = delta.new(f"TBLPROPERTIES ({properties})", _ROWS)
    _engines.spark.sql(f"INSERT INTO {table} VALUES (3, 3)")
    return table


@pytest.mark.operation("risky features: off by default", engine=SPARK)
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
def test_a_plain_table_carries_none(
    engines: Engines, delta: Tables, endpoints: Endpoints, fmt: object
) -> None:
    table = delta.new("", _ROWS)
    assert table.format is fmt
    engines.spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert _risks(endpoints, table) == []


@pytest.mark.operation("risky features: refused without being asked for", engine=SPARK)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ALTER COLUMN amount TYPE BIGINT", r"(?i)delta\.enableTypeWidening|not supported|cannot"),
        ("RENAME COLUMN amount TO price", r"(?i)column mapping"),
    ],
    ids=["typeWidening", "columnMapping"],
)
def test_a_plain_table_refuses_the_change(engines: Engines, delta: Tables, change: str, reason: str) -> None:
    engines.refuses(SPARK, f"ALTER TABLE {delta.new('', _ROWS)} {change}", reason)


@pytest.mark.operation("risky features: found in existing tables", engine="all")
@pytest.mark.parametrize("danger", DANGERS, ids=str)
def test_the_check_finds_it(
    danger: Danger, carrying: Callable[[Danger], Table], endpoints: Endpoints
) -> None:
    [risk] = _risks(endpoints, carrying(danger))
    assert risk.split(":")[0] == danger.feature


@pytest.mark.operation("risky features: a legacy table's checkpoint is judged", engine="all")
def test_a_checkpoint_of_a_legacy_table_hides_nothing(
    engines: Engines, delta: Tables, endpoints: Endpoints
) -> None:
    """In it the features that such a table has not are null."""
    table = delta.new("", _ROWS)
    engines.spark.sql(f"INSERT INTO {table} VALUES (3, 3)")
    engines.clients.delta(table.short).create_checkpoint()
    assert _risks(endpoints, table) == []


@pytest.mark.operation("risky features: {danger}", engine="{reader}")
@pytest.mark.parametrize(
    ("danger", "reader"),
    [
        pytest.param(danger, reader, id=f"{danger}-{reader}", marks=marks(UNREAD.get(danger)))
        for danger in DANGERS
        for reader in CLIENTS
    ],
)
def test_the_clients_read_it_right_or_refuse(
    danger: Danger,
    reader: str,
    carrying: Callable[[Danger], Table],
    engines: Engines,
    note: Callable[[str], None],
) -> None:
    table = carrying(danger)
    if limit := UNREAD.get(danger):
        with pytest.raises(ClientError, match=limit.reason) as refusal:
            engines.read(reader, table)
        note(str(refusal.value))
    else:
        assert sorted(engines.read(reader, table)) == list(danger.rows)


@pytest.mark.operation("risky features: {danger}, by to_pyarrow_table", engine=DELTA_RS)
@pytest.mark.parametrize(
    ("danger", "limit"),
    [pytest.param(danger, limit, id=str(danger), marks=limit.mark) for danger, limit in UNSCANNED.items()],
)
def test_deltalake_alone_refuses_it(
    danger: Danger,
    limit: Limit,
    carrying: Callable[[Danger], Table],
    engines: Engines,
    note: Callable[[str], None],
) -> None:
    table = engines.clients.delta(carrying(danger).short)
    with pytest.raises(DeltaProtocolError, match=limit.reason) as refusal:
        table.to_pyarrow_table()
    note(str(refusal.value))


@pytest.mark.operation("v2 checkpoints", engine="{reader}")
@pytest.mark.parametrize("reader", READERS[DELTA])
def test_everybody_reads_v2_checkpoints(reader: str, checkpointed: Table, engines: Engines) -> None:
    """Not a danger, but a feature for which a client has to be asked: the kit's lets it pass."""
    assert engines.clients.delta(checkpointed.short).protocol().reader_features == ["v2Checkpoint"]
    assert sorted(engines.read(reader, checkpointed)) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.operation("risky features: type widening", engine=TRINO)
@WIDENING.limit.mark
def test_trino_leaves_out_a_widened_column(engines: Engines, carrying: Callable[[Danger], Table]) -> None:
    """The danger itself: no error, and a column less. When this fails, Trino has learnt to read it."""
    table = carrying(WIDENING)
    assert engines.columns(SPARK, table) == ["id", "amount"]
    assert engines.columns(TRINO, table) == ["id"]
    assert sorted(engines.read(TRINO, table)) == [(1,), (2,), (3,)]


@pytest.mark.operation("risky features: deletion vectors", engine=TRINO)
@VECTORS.limit.mark
def test_deleted_rows_come_back(engines: Engines, carrying: Callable[[Danger], Table]) -> None:
    """With the property off again, a checkpoint makes Trino forget the deletion vectors."""
    table = carrying(VECTORS)
    assert sorted(engines.read(TRINO, table)) == list(VECTORS.rows)
    engines.spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES"
        " ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '1')"
    )
    engines.spark.sql(f"INSERT INTO {table} VALUES (3, 3)")
    for reader in (SPARK, *CLIENTS):
        assert sorted(engines.read(reader, table)) == [(2, 2), (3, 3)]
    assert sorted(engines.read(TRINO, table)) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.operation("risky features: column mapping", engine=DELTA_RS)
@MAPPING.limit.mark
def test_delta_rs_reads_a_renamed_column_as_null(
    engines: Engines, carrying: Callable[[Danger], Table]
) -> None:
    kit_table = engines.clients.delta(carrying(MAPPING).short)
    plain_table = DeltaTable(kit_table.table_uri, storage_options=dict(engines.clients.settings.hdfs))
    assert plain_table.to_pyarrow_table().column("price").to_pylist() == [None, None]


@pytest.mark.operation("risky features: column mapping in the kit's client", engine=DELTA_RS)
def test_the_clients_refuse_that_call_and_trino_reads_it_right(
    engines: Engines, carrying: Callable[[Danger], Table]
) -> None:
    table = carrying(MAPPING)
    with pytest.raises(ClientError, match="column mapping"):
        engines.clients.delta(table.short).to_pyarrow_table()
    assert sorted(engines.read(TRINO, table)) == list(MAPPING.rows)


@pytest.mark.operation("long decimals by write_deltalake", engine=DELTA_RS)
@ROUNDED.mark
@pytest.mark.parametrize("reader", [SPARK, DELTA_RS])
def test_rounded_statistics_of_delta_rs_lose_rows(
    engines: Engines, decimals: Callable[[bool], Table], reader: str
) -> None:
    assert _found(engines, decimals(False), reader) == 0


@pytest.mark.operation("long decimals by the kit's client", engine=DELTA_RS)
@pytest.mark.parametrize("reader", [SPARK, TRINO, DELTA_RS])
def test_the_clients_write_long_decimals_that_all_find(
    engines: Engines, decimals: Callable[[bool], Table], reader: str
) -> None:
    assert _found(engines, decimals(True), reader) == 1


@pytest.mark.operation("table dropped and made again", engine=TRINO)
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
def test_trino_sees_a_table_that_was_made_again(engines: Engines, delta: Tables, fmt: object) -> None:
    table = delta.new("", _ROWS)
    assert table.format is fmt
    assert sorted(engines.read(TRINO, table)) == [(1, 1), (2, 2)]
    engines.spark.sql(f"DROP TABLE {table} PURGE")
    engines.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 'other' AS word")
    assert engines.columns(TRINO, table) == ["word"]
    assert engines.read(TRINO, table) == [("other",)]


@pytest.mark.operation("microseconds of Delta", engine=TRINO)
@CUT.mark
@pytest.mark.parametrize("fmt", [DELTA], ids=str)
def test_trino_cuts_microseconds_of_delta(
    engines: Engines, delta: Tables, endpoints: Endpoints, fmt: object
) -> None:
    """Only a time without zone keeps them; the check says which tables have the other kind."""
    table = delta.new(
        "",
        "SELECT TIMESTAMP '2024-01-01 00:00:00.123456' AS moment,"
        " TIMESTAMP_NTZ '2024-01-01 00:00:00.123456' AS wall",
    )
    assert table.format is fmt
    [(moment, wall)] = engines.trino.sql(f"SELECT moment, wall FROM {table.full(TRINO)}")
    assert (moment.microsecond, wall.microsecond) == (123000, 123456)
    assert _risks(endpoints, table) == ["timestamp: moment"]


@pytest.fixture
def untold(endpoints: Endpoints, spark: Spark) -> Iterator[Flink]:
    """A session of the SQL gateway that was not told whether it is for queries that end.

    It has two readers: one alone cannot end before another.
    """
    session = sessions.flink(endpoints, properties={MODE: None, "parallelism.default": "2"})
    session.statements = spark.statements
    yield session
    session.close()


@pytest.mark.operation("bounded source arrives whole", engine=FLINK)
@pytest.mark.parametrize("fmt", [ICEBERG], ids=str)
def test_a_source_that_ends_arrives_whole(
    engines: Engines, iceberg: Tables, untold: Flink, fmt: object
) -> None:
    """As a stream the readers that end first can lose their last rows; the default is no stream."""
    settings = {row[0]: row[1] for row in untold.sql("SET")}
    assert settings[MODE] == "batch"
    table = iceberg.name()
    assert table.format is fmt
    engines.spark.sql(f"CREATE TABLE {table} (run INT, id BIGINT) USING {fmt}")
    untold.sql(f"""
        CREATE TEMPORARY TABLE default_catalog.default_database.numbers (id BIGINT) WITH (
          'connector' = 'datagen', 'number-of-rows' = '{NUMBERS}', 'fields.id.kind' = 'sequence',
          'fields.id.start' = '1', 'fields.id.end' = '{NUMBERS}')
    """)
    for run in range(RUNS):
        untold.sql(
            f"INSERT INTO {table.full(FLINK)} SELECT {run}, id FROM default_catalog.default_database.numbers"
        )
    expected = engines.spark.sql(f"SELECT {_WHOLE} FROM range(1, {NUMBERS + 1})")
    results = engines.spark.sql(f"SELECT run, {_WHOLE} FROM {table} GROUP BY run ORDER BY run")
    assert results == [(run, *expected[0]) for run in range(RUNS)]


@pytest.mark.operation("microseconds of a client", engine=TRINO)
def test_a_client_that_says_nothing_gets_milliseconds(engines: Engines, endpoints: Endpoints) -> None:
    """Trino cuts for clients that do not announce PARAMETRIC_DATETIME; the kit's own do announce it."""
    query = "SELECT TIMESTAMP '2024-01-01 00:00:00.123456'"
    assert engines.trino.value(query).microsecond == 123456
    assert _as_plain_client(endpoints, query) == "2024-01-01 00:00:00.123"


def _found(engines: Engines, table: Table, reader: str) -> int:
    """Count the rows that hold the long decimal."""
    condition = f"x = CAST('{_LONG}' AS {_KIND})"
    if reader == DELTA_RS:
        return int(engines.clients.arrow(f"delta.{table.short}", filter=condition).num_rows)
    [[count]] = engines.sql(reader, f"SELECT count(*) FROM {table.full(reader)} WHERE {condition}")
    return int(count)


def _risks(endpoints: Endpoints, table: Table) -> list[str]:
    return [finding.risk.feature for finding in risky.find(endpoints.path) if finding.table == table.short]


def _as_plain_client(endpoints: Endpoints, query: str) -> str:
    """Run a query as a client without capabilities would; return its one value as it came."""
    headers = {"X-Trino-User": endpoints.users["trino"]}
    assert endpoints.trino
    url = f"{endpoints.trino.http}/v1/statement"
    page = requests.post(url, query, headers=headers, timeout=30).json()
    while "data" not in page:
        page = requests.get(page["nextUri"], headers=headers, timeout=30).json()
    return str(page["data"][0][0])
