"""docs/metastore.md names calls that the pinned API has, and what the metastore really stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hive_metastore import ThriftHiveMetastore

from suites.testbed.formats import CATALOGUED

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metastore.md").read_text(encoding="utf-8")
CALLS = {name for name in vars(ThriftHiveMetastore.Iface) if not name.startswith("_")}
ENGINES = re.findall(r"^\| (Spark|Trino|Flink|PyIceberg) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("engine", "reads", "writes"), ENGINES, ids=[row[0] for row in ENGINES])
def test_an_engine_is_said_to_call_what_there_is(engine: str, reads: str, writes: str) -> None:
    assert set(re.findall(r"`(\w+)`", reads + writes)) <= CALLS, engine


def test_what_guides_call_is_not_there() -> None:
    assert "get_table_statistics" not in CALLS
    assert {"get_table", "get_table_column_statistics", "get_table_statistics_req"} <= CALLS


def test_input_formats_are_those_that_the_smoke_suite_reads() -> None:
    for stored in CATALOGUED.values():
        assert f"`{stored.input_format}`" in PAGE
