"""The conditions after an operation, read by the engine itself, and by Spark as the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hive_metastore.ttypes import NoSuchObjectException

from suites.matrix import operations
from suites.matrix.adapters import Adapter
from suites.matrix.cells import Cell
from suites.matrix.stage import STRAY, Stage
from suites.testbed.databases import Table
from suites.testbed.engines.facade import Row
from suites.testbed.engines.spark import Spark
from suites.testbed.formats import DELTA, ICEBERG
from suites.testbed.metastore import Connection
from suites.testbed.tables import history

# What the partitions look like after `partition evolution`, by family: Spark's query, and its answer.
_LAYOUTS: dict[str, tuple[str, list[Row]]] = {
    # Old rows lie as before, the new one as asked.
    ICEBERG.family: ("SELECT DISTINCT spec_id FROM {table}.files ORDER BY spec_id", [(0,), (1,)]),
    # A table of Delta has one layout: a change of it moves every row.
    DELTA.family: ("SELECT DISTINCT _metadata.file_path LIKE '%/day=%' FROM {table}", [(True,)]),
}


@dataclass(frozen=True)
class Scene:
    """A cell after its operation; `table` is the one that the operation was about, `answer` what it said."""

    cell: Cell
    table: Table
    answer: list[Row]
    adapter: Adapter
    stage: Stage


def answer(scene: Scene) -> None:
    """The operation was a question, and was answered."""
    _same("the answer", scene.answer, scene)


def rows(scene: Scene) -> None:
    """The engine and Spark read the same, and it is right."""
    columns = scene.cell.operation.columns
    _same(scene.cell.engine, scene.adapter.read(scene.table, columns), scene)
    if scene.cell.engine != "spark":
        order = "id" if columns[0] == "*" else columns[0]
        query = f"SELECT {', '.join(columns)} FROM {scene.table} ORDER BY {order}"
        _same("Spark", scene.stage.spark.sql(query), scene)


def one_file(scene: Scene) -> None:
    """All rows are in one file."""
    rows(scene)
    files = f"SELECT DISTINCT {scene.table.format.file} AS file FROM {{table}}"
    _reference(scene, f"SELECT count(*) FROM ({files})", [(1,)])


def one_version(scene: Scene) -> None:
    """There is no past."""
    rows(scene)
    versions = history(scene.stage.spark, scene.table)
    assert len(versions) == 1, f"Spark sees {len(versions)} versions: {versions}"


def two_layouts(scene: Scene) -> None:
    """The rows lie as the format lays them out after the change."""
    rows(scene)
    _reference(scene, *_LAYOUTS[scene.table.format.family])


def wider(scene: Scene) -> None:
    """The column has the wide type, and the old rows are there."""
    rows(scene)
    _reference(scene, "SELECT DISTINCT typeof(id) FROM {table}", [("bigint",)])


def stray_file_gone(scene: Scene) -> None:
    """The file that belonged to nothing is gone, the rows are not."""
    rows(scene)
    stray_paths = [
        file.path for file in scene.stage.namenode.files(scene.table.path) if file.path.endswith(STRAY)
    ]
    assert not stray_paths, f"still there: {stray_paths}"


def table_gone(scene: Scene) -> None:
    """The metastore knows the table no more."""
    user = scene.stage.endpoints.users["spark"]
    with Connection(scene.stage.endpoints.metastore, user, (scene.stage.endpoints.group,)) as client:
        try:
            client.get_table(scene.table.database, scene.table.name)
        except NoSuchObjectException:
            return
    raise AssertionError(f"the metastore still has {scene.table.short}")


def unchanged(spark: Spark, start: str, table: Table) -> None:
    """A table is as it was when it began like this."""
    got = spark.sql(f"SELECT * FROM {table} ORDER BY id")
    expected = operations.rows_at(start)
    assert got == expected, f"{table} was changed\nexpected: {expected}\ngot:      {got}"


PROOFS: dict[str, Callable[[Scene], None]] = {
    operations.ANSWER: answer,
    operations.ROWS: rows,
    operations.ONE_FILE: one_file,
    operations.ONE_VERSION: one_version,
    operations.TWO_LAYOUTS: two_layouts,
    operations.WIDER: wider,
    operations.STRAY_FILE_GONE: stray_file_gone,
    operations.TABLE_GONE: table_gone,
}


def _same(reader: str, actual: list[Row], scene: Scene) -> None:
    expected = list(scene.cell.operation.rows)
    assert actual == expected, f"{reader} reads other rows\nexpected: {expected}\ngot:      {actual}"


def _reference(scene: Scene, query: str, expected: list[Row]) -> None:
    query = query.format(table=scene.table)
    got = scene.stage.spark.sql(query)
    assert got == expected, f"Spark says otherwise: {query}\nexpected: {expected}\ngot:      {got}"
