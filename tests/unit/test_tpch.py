"""The queries of TPC-H as they are kept, the source files, and engines at work side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.matrix.tpch import queries, source
from suites.matrix.tpch.compare import Row
from suites.matrix.tpch.queries import QUERIES, Query
from suites.matrix.tpch.runner import Runner, Session, Stream, Task
from suites.matrix.tpch.source import CHECKSUMS, Source
from suites.testbed.formats import ICEBERG


def test_there_are_22_queries() -> None:
    assert [query.name for query in QUERIES] == [f"q{number:02}" for number in range(1, 23)]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_query_is_one_statement_with_a_title(query: Query) -> None:
    assert query.title
    assert query.text.startswith(("SELECT", "WITH"))
    assert not {";", "--"} & set(query.text.split())
    assert query.limit is None or query.order, "a limit without an order returns any rows"


def test_a_query_knows_how_its_answer_is_cut_and_sorted() -> None:
    query = queries.parse(
        "q99", "-- Two\n-- More of it.\nSELECT a, b\nFROM t\nORDER BY a DESC, b\nLIMIT 10\n"
    )
    assert (query.title, query.order, query.limit) == ("Two", ("a", "b"), 10)
    assert query.text == "SELECT a, b\nFROM t\nORDER BY a DESC, b\nLIMIT 10"
    assert query.unlimited == "SELECT a, b\nFROM t\nORDER BY a DESC, b"


def test_a_subquery_does_not_sort_the_answer() -> None:
    assert queries.parse("q99", "-- One\nSELECT a FROM (\n  SELECT a\n  ORDER BY a\n) t\n").order == ()


def test_every_table_has_a_checksum() -> None:
    checksums = source.parse(CHECKSUMS.read_text(encoding="utf-8"))
    assert set(checksums) == {
        "customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier",
    }  # fmt: skip


def test_a_missing_and_a_damaged_source_file_are_found(tmp_path: Path) -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (tmp_path / "good.parquet").touch()
    (tmp_path / "damaged.parquet").write_text("x")
    files = Source(tmp_path, {"good": empty, "damaged": empty, "absent": empty})
    assert source.wrong(files) == ["damaged.parquet", "absent.parquet"]


class _Engine:
    """Answers with what it was asked, and refuses one query."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def sql(self, statement: str) -> list[Row]:
        self.heard.append(statement)
        if statement == "broken":
            raise ValueError(statement)
        return [(statement,)]


def _no_session() -> Session:
    raise ConnectionError("refused")


def test_a_lane_goes_on_after_a_query_that_failed() -> None:
    engine, stream = _Engine(), Stream("trino", ICEBERG, ("USE tpch",))
    broken, good = (Task(stream, Query(text, "", text)) for text in ("broken", "good"))
    runner = Runner({"trino": lambda: engine}, [broken, good])
    with pytest.raises(ValueError, match="broken"):
        runner.result(broken)
    assert runner.result(good).rows == [("good",)]
    runner.close()
    assert engine.heard == ["USE tpch", "broken", "good"]


def test_an_engine_without_a_session_fails_alone() -> None:
    query = Query("q01", "", "good")
    here, gone = (Task(Stream(engine, ICEBERG, ()), query) for engine in ("spark", "flink"))
    runner = Runner({"spark": _Engine, "flink": _no_session}, [here, gone])
    assert runner.result(here).rows == [("good",)]
    with pytest.raises(ConnectionError, match="refused"):
        runner.result(gone)
    runner.close()
