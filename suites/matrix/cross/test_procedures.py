"""Procedures that people need, from the engine that offers them; every other engine sees what they did."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from lakehouse_clients import file_io

from suites.matrix.cross import canonical
from suites.matrix.cross.data_types import INSTANT, INT, TEXT, record
from suites.matrix.cross.engine_tables import EngineTables
from suites.matrix.cross.engines import READERS, SPARK, SQL_ENGINES, TRINO, Engines
from suites.matrix.cross.limits import refused
from suites.testbed.databases import Table
from suites.testbed.engines.facade import Facade, Row
from suites.testbed.formats import ICEBERG
from suites.testbed.namenode import NameNode
from suites.testbed.tables import data_files

pytestmark = [pytest.mark.parametrize("fmt", [ICEBERG], ids=str)]

_ROWS = "SELECT CAST(id AS INT) AS id FROM range(1, 4, 1, 3)"
NO_MIGRATION = refused(r"non-Iceberg Spark Session Catalog", "https://github.com/apache/iceberg/issues/7317")
THREE: list[Row] = [(1,), (2,), (3,)]


def seen(engines: Engines, table: Table) -> dict[str, list[Row]]:
    """Return the rows as each engine sees them."""
    return {reader: sorted(engines.read(reader, table)) for reader in READERS[ICEBERG]}


def everywhere(rows: list[Row]) -> dict[str, list[Row]]:
    """Return what `seen` must return."""
    return dict.fromkeys(READERS[ICEBERG], rows)


def of_hive(engines: Engines, iceberg: EngineTables) -> Table:
    """Return a Hive table with one row, under a name for a table of Iceberg."""
    table = iceberg.name()
    engines.trino.sql(f"CREATE TABLE hive.{table.short} WITH (format = 'PARQUET') AS SELECT 1 AS id")
    return table


def newest_metadata(engines: Engines, table: Table) -> str:
    """Return the file that is the table."""
    return str(
        engines.spark.value(f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    )


@pytest.mark.operation("register a table", engine=TRINO)
def test_trino_registers_what_spark_forgot(engines: Engines, iceberg: EngineTables, fmt: object) -> None:
    table = iceberg.new("", _ROWS)
    location, metadata = iceberg.location(table), newest_metadata(engines, table)
    engines.spark.sql(f"DROP TABLE {table}")
    engines.trino.sql(
        f"CALL iceberg.system.register_table('{table.database}', '{table.name}',"
        f" 'hdfs://{metadata.split('/')[2]}{location}', '{metadata.rpartition('/')[2]}')"
    )
    assert table.format is fmt
    assert seen(engines, table) == everywhere(THREE)


@pytest.mark.operation("register a table", engine=SPARK)
def test_spark_registers_what_trino_forgot(engines: Engines, iceberg: EngineTables, fmt: object) -> None:
    table = iceberg.new("", _ROWS)
    metadata = newest_metadata(engines, table)
    engines.trino.sql(f"CALL iceberg.system.unregister_table('{table.database}', '{table.name}')")
    engines.spark.sql(
        f"CALL iceberg.system.register_table(table => '{table.short}', metadata_file => '{metadata}')"
    )
    assert table.format is fmt
    assert seen(engines, table) == everywhere(THREE)


@pytest.mark.operation("copy a Hive table", engine=SPARK)
def test_a_copy_of_a_hive_table_is_right_whatever_becomes_of_it(
    engines: Engines, iceberg: EngineTables, fmt: object
) -> None:
    """Names of folders, capitals in a struct, columns that come back: `migrate` and `add_files` lose them."""
    source, table = iceberg.name(), iceberg.name()
    columns = "id INT, secret STRING, name STRING, st STRUCT<A: INT>, ts TIMESTAMP"
    for statement in (
        f"CREATE TABLE spark_catalog.{source.short} ({columns}) PARTITIONED BY (p STRING) STORED AS PARQUET",
        f"INSERT INTO spark_catalog.{source.short} VALUES"
        " (1, 'old', 'ada', named_struct('A', 1), TIMESTAMP '2024-05-01 10:00:00.123456', 'a b/c'),"
        " (2, 'older', 'bob', named_struct('A', NULL), NULL, NULL)",
        f"CREATE TABLE {table} USING iceberg PARTITIONED BY (p)"
        f" AS SELECT * FROM spark_catalog.{source.short}",
        f"ALTER TABLE {table} DROP COLUMN secret",
        f"ALTER TABLE {table} ADD COLUMN secret STRING",
        f"ALTER TABLE {table} RENAME COLUMN name TO title",
        f"ALTER TABLE {table} ADD COLUMN name STRING",
        f"CALL iceberg.system.rewrite_data_files('{table.short}', options => map('rewrite-all', 'true'))",
    ):
        engines.spark.sql(statement)
    assert table.format is fmt
    kinds = {
        "id": INT, "secret": TEXT, "title": TEXT, "name": TEXT, "st": record(A=INT), "ts": INSTANT, "p": TEXT,
    }  # fmt: skip
    moment = dt.datetime(2024, 5, 1, 10, 0, 0, 123456, dt.UTC)
    rows = [
        (1, None, "ada", None, {"A": 1}, moment, "a b/c"),
        (2, None, "bob", None, {"A": None}, None, None),
    ]
    expected = canonical.rows(rows, kinds.values())
    for reader in READERS[ICEBERG]:
        result = engines.read(reader, table, list(kinds))
        assert canonical.rows(result, kinds.values()) == expected, reader
    for engine in SQL_ENGINES:
        for condition, number in (("= 'a b/c'", 1), ("IS NULL", 2)):
            result = engines.sql(engine, f"SELECT id FROM {table.full(engine)} WHERE p {condition}")
            assert [tuple(fields) for fields in result] == [(number,)], engine


@pytest.mark.operation("migrate a Hive table", engine=SPARK)
@NO_MIGRATION.mark
def test_spark_does_not_migrate_a_hive_table(
    engines: Engines, iceberg: EngineTables, fmt: object, note: Callable[[str], None]
) -> None:
    """Its procedure wants the catalog that is Delta's."""
    table = of_hive(engines, iceberg)
    assert table.format is fmt
    migrate = f"CALL iceberg.system.migrate('{table.short}')"
    note(engines.refuses(SPARK, migrate, NO_MIGRATION.reason))
    assert engines.trino.sql(f"SELECT id FROM hive.{table.short}") == [(1,)]


@pytest.mark.operation("rollback", engine=TRINO)
def test_trino_rolls_back_what_spark_did(engines: Engines, iceberg: EngineTables, fmt: object) -> None:
    table = iceberg.new("", _ROWS)
    before = engines.trino.value(f'SELECT snapshot_id FROM iceberg.{table.database}."{table.name}$snapshots"')
    engines.spark.sql(f"DELETE FROM {table} WHERE id < 3")
    engines.trino.sql(f"ALTER TABLE {table.full(TRINO)} EXECUTE rollback_to_snapshot({before})")
    assert table.format is fmt
    assert seen(engines, table) == everywhere(THREE)


@pytest.mark.operation("compact, expire, remove orphans", engine=TRINO)
def test_trino_clears_up_after_spark(
    engines: Engines, second_trino: Facade, iceberg: EngineTables, namenode: NameNode, fmt: object
) -> None:
    table = iceberg.new("", _ROWS)
    engines.spark.sql(f"INSERT INTO {table} VALUES (4)")
    assert len(data_files(engines.spark, table)) > 1
    orphan = f"{table.path}/data/orphan.parquet"
    with file_io.file_system(engines.clients.settings.hdfs).open(orphan, "wb") as file:
        file.write(b"of a writer that died")
    second_trino.sql("SET SESSION iceberg.expire_snapshots_min_retention = '0s'")
    second_trino.sql("SET SESSION iceberg.remove_orphan_files_min_retention = '0s'")
    for procedure in (
        "optimize",
        "expire_snapshots(retention_threshold => '0s')",
        "remove_orphan_files(retention_threshold => '0s')",
    ):
        second_trino.sql(f"ALTER TABLE {table.full(TRINO)} EXECUTE {procedure}")

    assert table.format is fmt
    remaining_paths = {file.path for file in namenode.files(f"{table.path}/data")}
    assert remaining_paths == data_files(engines.spark, table)
    assert len(remaining_paths) == 1
    assert seen(engines, table) == everywhere([*THREE, (4,)])


@pytest.mark.operation("orphans too young are refused", engine=TRINO)
def test_trino_refuses_to_remove_what_may_be_in_use(
    engines: Engines, iceberg: EngineTables, fmt: object
) -> None:
    table = iceberg.new("", _ROWS)
    assert table.format is fmt
    engines.refuses(
        TRINO,
        f"ALTER TABLE {table.full(TRINO)} EXECUTE remove_orphan_files(retention_threshold => '1d')",
        r"shorter than the minimum retention",
    )
    engines.refuses(
        SPARK,
        f"CALL iceberg.system.remove_orphan_files(table => '{table.short}',"
        " older_than => current_timestamp())",
        r"(?i)less than 24 hours",
    )
